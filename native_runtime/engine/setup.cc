#include "engine/names.h"
#include "engine/plan.h"
#include "engine/program.h"

namespace wb::engine {

void* ProgramSetup::allocate(std::size_t bytes) {
  return host_->allocate(host_->self, bytes == 0 ? 1 : bytes, kAlignment);
}

void* ProgramSetup::allocate_packed(const void* constant, std::uint64_t format, std::size_t bytes, bool* ready) {
  *ready = false;
  for (const Packed& packed : packed_) {
    if (packed.constant != constant || packed.format != format || packed.bytes != bytes) continue;
    *ready = true;
    return packed.memory;
  }
  void* memory = allocate(bytes);
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
