// What the runtime does for a kernel or a backend. A plug-in library links against nothing: it gets this table.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "error.h"
#include "tensor.h"

namespace wb {

struct Host {
  void* self = nullptr;  // handed back as the first argument of each function

  // Memory that lives as long as the method; only while it is prepared. Null when there is none.
  void* (*allocate)(void* self, std::size_t bytes, std::size_t alignment) = nullptr;
  // Asks for at least `bytes` of scratch memory (64-byte aligned) during each execution; only while it is prepared.
  void (*request_scratch)(void* self, std::size_t bytes) = nullptr;
  // Sets the sizes (and the strides that follow) of a tensor that an instruction writes. Fails when the tensor is
  // static and the sizes differ, or when its memory cannot hold them.
  Error (*resize)(void* self, Tensor& tensor, const std::int32_t* sizes, int rank) = nullptr;
  // Adds to the diagnostic of the method.
  void (*vreport)(void* self, const char* format, std::va_list args) = nullptr;
};

}  // namespace wb
