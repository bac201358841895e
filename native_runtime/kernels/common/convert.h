// Conversion between element types and lanes, a block at a time.
#pragma once

#include "kernels/common/types.h"
#include "kernels/registry.h"

namespace wb::kernels::WB_ISA {

// Elements that kernels convert at a time, into blocks on the stack.
inline constexpr std::int64_t kBlock = 512;

// dst[i] = lane(src[i * stride]) for i in [0, n); stride in elements, 0 and negative allowed; dst is dense.
using LoadFunction = void (*)(void* dst, const void* src, std::int64_t stride, std::int64_t n);
// dst[i * stride] = dtype(src[i]); src is dense.
using StoreFunction = void (*)(void* dst, std::int64_t stride, const void* src, std::int64_t n);

// Null when the element type can't be brought to the lane (not computable, or a Raw lane of another size).
[[nodiscard]] LoadFunction find_load(ScalarType type, Lane lane);
[[nodiscard]] StoreFunction find_store(ScalarType type, Lane lane);

// True if a tensor of that type is an array of the lane's type already.
[[nodiscard]] constexpr bool is_identity(ScalarType type, Lane lane) {
  switch (lane) {
    case Lane::F32: return type == ScalarType::Float;
    case Lane::F64: return type == ScalarType::Double;
    case Lane::I64: return type == ScalarType::Long || type == ScalarType::UInt64;
    case Lane::Bool: return type == ScalarType::Bool;
    default: return element_size(type) == lane_size(lane);
  }
}

// The lane through which a value of one type becomes one of the other, as PyTorch's `to` does.
[[nodiscard]] constexpr Lane cast_lane(ScalarType from, ScalarType to) {
  if (from == to) return raw_lane(element_size(from));
  if (from == ScalarType::Double) return Lane::F64;
  if (is_floating(from)) return to == ScalarType::Double ? Lane::F64 : Lane::F32;
  if (from == ScalarType::Bool) return Lane::Bool;
  return Lane::I64;
}

}  // namespace wb::kernels::WB_ISA
