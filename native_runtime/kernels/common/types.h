// The C++ types that stand for element types, and lanes: the few types that kernels compute in. A tensor of any dtype
// is brought to a lane block by block (see convert.h), so that an operator needs one loop a lane, not one a dtype.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/scalar_type.h"

#ifndef WB_ISA
#error "this header is compiled once per instruction set"
#endif

namespace wb::kernels::WB_ISA {

struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const std::uint32_t raw = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (raw + 0x7fffU + ((raw >> 16) & 1U)) >> 16;  // to nearest, ties to even
    bits = static_cast<std::uint16_t>(value != value ? 0x7fc0U : rounded);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// Before version 13 GCC knows _Float16 in C++ only for x86. __fp16 is the same in memory, and computes as float.
#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13
using Half = __fp16;
#else
using Half = _Float16;
#endif

// F32, F64, I64 and Bool compute; the Raw lanes only move bits of their size.
enum class Lane : std::uint8_t { F32 = 0, F64 = 1, I64 = 2, Bool = 3, Raw8 = 4, Raw16 = 5, Raw32 = 6, Raw64 = 7 };

inline constexpr int kComputeLanes = 4;

[[nodiscard]] constexpr std::size_t lane_size(Lane lane) {
  switch (lane) {
    case Lane::F32:
    case Lane::Raw32: return 4;
    case Lane::F64:
    case Lane::I64:
    case Lane::Raw64: return 8;
    case Lane::Bool:
    case Lane::Raw8: return 1;
    case Lane::Raw16: return 2;
  }
  return 0;
}

// The lane that moves elements of `size` bytes (1, 2, 4, 8) unchanged.
[[nodiscard]] constexpr Lane raw_lane(std::size_t size) {
  return size == 1 ? Lane::Raw8 : size == 2 ? Lane::Raw16 : size == 4 ? Lane::Raw32 : Lane::Raw64;
}

// True for the element types that kernels read and write: all integers, bool, and the floating-point types of 16 to 64
// bits. Complex, quantized, bit and 8-bit float types are only moved.
[[nodiscard]] constexpr bool is_computable(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::Half:
    case ScalarType::Float:
    case ScalarType::Double:
    case ScalarType::Bool:
    case ScalarType::BFloat16:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::UInt64: return true;
    default: return false;
  }
}

[[nodiscard]] constexpr bool is_floating(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::Float || type == ScalarType::Double ||
         type == ScalarType::BFloat16;
}

[[nodiscard]] constexpr bool is_integral(ScalarType type) {
  return is_computable(type) && !is_floating(type) && type != ScalarType::Bool;
}

// The lane that holds every value of the type (64-bit unsigned numbers wrap).
[[nodiscard]] constexpr Lane natural_lane(ScalarType type) {
  if (type == ScalarType::Double) return Lane::F64;
  if (is_floating(type)) return Lane::F32;
  return type == ScalarType::Bool ? Lane::Bool : Lane::I64;
}

}  // namespace wb::kernels::WB_ISA
