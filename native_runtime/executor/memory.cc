#include "executor/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace wb {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kFirstBlock = 0;  // a block for each request: the sanitizer sees what goes past its end
constexpr std::size_t kLastBlock = 0;
constexpr std::size_t kMappedBytes = SIZE_MAX;
#else
constexpr std::size_t kFirstBlock = std::size_t{16} << 10;  // each block is twice the one before it, up to the last
constexpr std::size_t kLastBlock = std::size_t{512} << 10;
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
std::byte* MethodMemory::block(std::size_t bytes, bool touch_all) {
  if (bytes > SIZE_MAX / 2 || (limit_ != 0 && reserved_ + bytes > limit_)) return nullptr;
  Block* fresh = nullptr;
  std::size_t mapped = 0;
  if (bytes >= kMappedBytes) {
    mapped = sizeof(Block) + bytes;
    // A block that small requests share will be used whole: one call for all its pages costs less than their faults.
    const int populate = touch_all ? MAP_POPULATE : 0;
    void* pages = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
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
  const std::size_t shared = std::clamp(next_block_, kFirstBlock, kLastBlock);
  if (bytes + alignment > kFirstBlock / 4) {
    std::byte* own = block(bytes + alignment, false);
    return own == nullptr ? nullptr : align_up(own, alignment);
  }
  std::byte* start = cursor_ == nullptr ? nullptr : align_up(cursor_, alignment);
  if (start == nullptr || start > end_ || static_cast<std::size_t>(end_ - start) < bytes) {
    std::byte* fresh = block(shared, true);
    if (fresh == nullptr) return nullptr;
    end_ = fresh + shared;
    next_block_ = 2 * shared;
    start = align_up(fresh, alignment);
  }
  cursor_ = start + bytes;
  return start;
}

}  // namespace wb
