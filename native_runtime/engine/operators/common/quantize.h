// Numbers as integers of 8 bits and back:
//
//   integer = clamp(round(number / scale) + zero point)    halves to even; infinities saturate, NaN stands as 0 does
//   number  = (integer - zero point) scale
//
// Scales are positive, normal floats; zero points are in the range of the integers.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/graph.h"
#include "engine/operators/common/integer_lanes.h"

namespace wb::engine::WB_ISA {

// What a vector of numbers becomes. Made once, used in loops:  store_narrowed(p, q(a), q(b), q(c), q(d)).
template <typename Q>
struct Quantizer {
  float inverse, low, high;
  std::int32_t zero_point;

  Quantizer(float scale, std::int32_t zero)
      : inverse(1.0F / scale),
        low(static_cast<float>(std::numeric_limits<Q>::min() - zero)),
        high(static_cast<float>(std::numeric_limits<Q>::max() - zero)),
        zero_point(zero) {}

  [[gnu::always_inline]] Ints operator()(Floats x) const {
    return nearest(at_most(at_least(x * inverse, low), high)) + zero_point;
  }
};

// The numbers that a vector of integers stands for.
struct Dequantizer {
  float scale;
  std::int32_t zero_point;

  [[gnu::always_inline]] Floats operator()(Ints q) const { return floats_of(q - zero_point) * scale; }
};

// `out` gets n integers. Q is std::int8_t or std::uint8_t.
template <typename Q>
void quantize_row(const float* x, std::int64_t n, float scale, std::int32_t zero_point, Q* out);

template <typename Q>
void dequantize_row(const Q* x, std::int64_t n, float scale, std::int32_t zero_point, float* out);

// The scale and zero point (of int8) with which the smallest and the largest of n numbers, and 0, are in range, as
// PyTorch's choose_qparams_per_token_asymmetric finds them. NaN are passed over, infinities count as the largest
// numbers; a row of nothing but zeros has scale 1 and zero point 0.
[[nodiscard]] RowQuantization find_row(const float* x, std::int64_t n);

// From the smallest and the largest number.
[[nodiscard]] RowQuantization row_of_range(float smallest, float largest);

}  // namespace wb::engine::WB_ISA
