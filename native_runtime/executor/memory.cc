#include "executor/memory.h"

#include <sys/mman.h>

#include <cstdlib>

namespace wb {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kBlockBytes = 0;  // a block for each request: the sanitizer sees what goes past its end
constexpr std::size_t kMappedBytes = SIZE_MAX;
#else
constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
constexpr std::size_t kMappedBytes = std::size_t{64} << 10;  // blocks from here on come from the system
#endif

std::byte* align_up(std::byte* pointer, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return pointer + ((alignment - address % alignment) % alignment);
}

}  // namespace

MethodMemory::~MethodMemory() {
  while (blocks_ != nullptr) {
    Block* next = blocks_->next;
    if (blocks_->mapped != 0) {
      ::munmap(blocks_, blocks_->mapped);
    } else {
      std::free(blocks_);
    }
    blocks_ = next;
  }
}

// The system's pages are zero and cost nothing until they are used; the heap would have to clear what it gives again.
std::byte* MethodMemory::block(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2 || (limit_ != 0 && reserved_ + bytes > limit_)) return nullptr;
  Block* fresh = nullptr;
  std::size_t mapped = 0;
  if (bytes >= kMappedBytes) {
    mapped = sizeof(Block) + bytes;
    void* pages = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED) fresh = static_cast<Block*>(pages);
  } else {
    fresh = static_cast<Block*>(std::calloc(1, sizeof(Block) + bytes));
  }
  if (fresh == nullptr) return nullptr;
  fresh->next = blocks_;
  fresh->mapped = mapped;
  blocks_ = fresh;
  reserved_ += bytes;
  return reinterpret_cast<std::byte*>(fresh + 1);
}

void* MethodMemory::allocate(std::size_t bytes, std::size_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || bytes > SIZE_MAX / 4 || alignment > SIZE_MAX / 4) {
    return nullptr;
  }
  if (bytes + alignment > kBlockBytes / 4) {
    std::byte* own = block(bytes + alignment);
    return own == nullptr ? nullptr : align_up(own, alignment);
  }
  std::byte* start = cursor_ == nullptr ? nullptr : align_up(cursor_, alignment);
  if (start == nullptr || start > end_ || static_cast<std::size_t>(end_ - start) < bytes) {
    std::byte* fresh = block(kBlockBytes);
    if (fresh == nullptr) return nullptr;
    end_ = fresh + kBlockBytes;
    start = align_up(fresh, alignment);
  }
  cursor_ = start + bytes;
  return start;
}

}  // namespace wb
