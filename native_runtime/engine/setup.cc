#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "engine/compile.h"
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

// Makes all pages of memory that is about to be written present in one call: a fraction of the cost of a fault for
// each. Only a hint too: old kernels do not know it.
std::byte* populate(void* memory, std::size_t bytes) {
#if defined(MADV_POPULATE_WRITE)
  constexpr std::uintptr_t kPage = 4096;
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kPage * kPage;
  if (memory != nullptr && end > begin) {
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
  }
#endif
  return static_cast<std::byte*>(memory);
}

}  // namespace

void* ProgramSetup::allocate(std::size_t bytes) {
  return host_->allocate(host_->self, bytes == 0 ? 1 : bytes, kAlignment);
}

// Weights stand in slabs of large pages, as far as there are weights left that fill one.
void* ProgramSetup::packed_memory(std::size_t bytes) {
  if (constants_left_ == kUnknown) {
    constants_left_ = 0;
    for (const Value& value : program_->graph.values) {
      if (value.kind != ValueKind::Constant) continue;
      constants_left_ += static_cast<std::size_t>(value.shape.numel()) * element_size(value.dtype);
    }
  }
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t wanted = std::max(rounded, std::min(constants_left_, kSlab));
  constants_left_ -= std::min(constants_left_, rounded);
  if (rounded <= slab_left_) {
    std::byte* memory = slab_;
    slab_ += rounded;
    slab_left_ -= rounded;
    return populate(memory, bytes);
  }
  if (wanted < kLargePage) return populate(allocate(bytes), bytes);
  auto* memory = static_cast<std::byte*>(host_->allocate(host_->self, wanted, kLargePage));
  if (memory == nullptr) return allocate(bytes);
  prefer_large_pages(memory, wanted);
  if (wanted - rounded > slab_left_) {
    slab_ = memory + rounded;
    slab_left_ = wanted - rounded;
  }
  return populate(memory, bytes);
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

std::uint64_t ProgramSetup::measured(const char* layer, const char* method, std::uint64_t ns) {
  if (is_set("LOWERING_WORKBENCH_DESCRIBE")) {
    std::fprintf(stderr, "trial: %s: %s %.1f us\n", layer, method, static_cast<double>(ns) * 1e-3);
  }
  return ns;
}

Error ProgramSetup::fail(Error error, const char* format, ...) {
  std::va_list list;
  va_start(list, format);
  host_->vreport(host_->self, format, list);
  va_end(list);
  return error;
}

}  // namespace wb::engine
