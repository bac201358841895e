// Constants that were made while a graph was compiled.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace wb::engine {

class Owned {
 public:
  // 64-byte aligned; null when there is no memory.
  [[nodiscard]] void* allocate(std::size_t bytes) {
    void* memory = bytes > SIZE_MAX / 2 ? nullptr : std::aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (memory != nullptr) blocks_.emplace_back(memory);
    return memory;
  }
  // Does nothing with memory that is not from here.
  void release(const void* memory) {
    std::erase_if(blocks_, [&](const auto& block) { return block.get() == memory; });
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<void, Free>> blocks_;
};

}  // namespace wb::engine
