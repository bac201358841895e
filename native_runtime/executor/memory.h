// Memory of a method: everything that lives as long as it does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wb {

// Hands out memory from growing blocks; all of it is zeroed and goes at once. Null when the system has none.
class MethodMemory {
 public:
  MethodMemory() = default;
  MethodMemory(const MethodMemory&) = delete;
  MethodMemory& operator=(const MethodMemory&) = delete;
  ~MethodMemory();

  // `alignment` is a power of two; 0 bytes give a valid pointer.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment);

  // Room for `count` objects, zeroed, for types for which that is a value.
  template <typename T>
  [[nodiscard]] T* array(std::size_t count) {
    if (count > SIZE_MAX / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
  }

  // Bytes that may be taken from the system; 0 for no limit.
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }

  // Bytes that were taken from the system.
  [[nodiscard]] std::size_t reserved() const { return reserved_; }

 private:
  struct Block {
    Block* next;
    std::size_t mapped;  // bytes to unmap; 0 for memory of the heap
  };

  std::byte* block(std::size_t bytes, bool touch_all);

  Block* blocks_ = nullptr;
  std::size_t next_block_ = 0;  // bytes of the next block that small requests share
  std::byte* cursor_ = nullptr;
  std::byte* end_ = nullptr;
  std::size_t reserved_ = 0;
  std::uint64_t limit_ = 0;
};

}  // namespace wb
