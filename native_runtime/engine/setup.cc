#include <sys/mman.h>

#include "engine/names.h"
#include "engine/plan.h"
#include "engine/program.h"

namespace wb::engine {

namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;
constexpr std::size_t kSlab = 4 * kLargePage;

// Asks for large pages, which cost a fraction of the faults of small ones. Only a hint.
void prefer_large_pages(void* memory, std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  ::madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#else
  (void)memory;
  (void)bytes;
#endif
}

}  // namespace

void* ProgramSetup::allocate(std::size_t bytes) {
  return host_->allocate(host_->self, bytes == 0 ? 1 : bytes, kAlignment);
}

// Weights of programs that have many stand in slabs of large pages; those of small programs would not fill one.
void* ProgramSetup::packed_memory(std::size_t bytes) {
  if (constant_bytes_ == 0) {
    for (const Value& value : program_->graph.values) {
      if (value.kind != ValueKind::Constant) continue;
      constant_bytes_ += static_cast<std::size_t>(value.shape.numel()) * element_size(value.dtype);
    }
  }
  if (constant_bytes_ < kSlab) return allocate(bytes);
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded <= slab_left_) {
    std::byte* memory = slab_;
    slab_ += rounded;
    slab_left_ -= rounded;
    return memory;
  }
  const std::size_t wanted = rounded >= kSlab ? rounded : kSlab;
  auto* memory = static_cast<std::byte*>(host_->allocate(host_->self, wanted, kLargePage));
  if (memory == nullptr) return allocate(bytes);
  prefer_large_pages(memory, wanted);
  if (wanted - rounded > slab_left_) {
    slab_ = memory + rounded;
    slab_left_ = wanted - rounded;
  }
  return memory;
}

void* ProgramSetup::allocate_packed(const void* constant, std::uint64_t format, std::size_t bytes, bool* ready) {
  *ready = false;
  for (const Packed& packed : packed_) {
    if (packed.constant != constant || packed.format != format || packed.bytes != bytes) continue;
    *ready = true;
    return packed.memory;
  }
  void* memory = packed_memory(bytes);
  if (memory == nullptr) return nullptr;
  packed_.push_back({constant, format, bytes, memory});
  program_->footprint.packed += bytes;
  return memory;
}

Error ProgramSetup::fail(Error error, const char* format, ...) {
  std::va_list list;
  va_start(list, format);
  host_->vreport(host_->self, format, list);
  va_end(list);
  return error;
}

}  // namespace wb::engine
