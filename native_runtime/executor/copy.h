// Copies of tensors whose elements lie otherwise in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace wb {

// Writes the elements at `source` (strides count elements, and may be zero or negative) to the tensor's memory, in the
// tensor's order.
void copy_from_strided(const Tensor& target, void* memory, const void* source, const std::int64_t* strides);

// True if the strides are those of the tensor; dimensions of size 1 do not count.
[[nodiscard]] bool has_strides(const Tensor& tensor, const std::int64_t* strides);

}  // namespace wb
