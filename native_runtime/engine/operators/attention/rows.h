// The softmax of rows of scores in powers of two, one block of keys after the other (the online softmax of Milakov and
// Gimelshein, 2018): scores come multiplied by log2(e), so that an element costs an addition and 2^x.
#pragma once

#include <cstdint>

#include "kernels/simd.h"

namespace wb::engine::WB_ISA::attention {

namespace simd = ::wb::kernels::WB_ISA;
using Floats = simd::Vec<float>;
using Ints = simd::Vec<std::int32_t>;
inline constexpr int kWidth = simd::kLanes<float>;
inline constexpr float kInfinity = __builtin_huge_valf();

// 2^x for x <= 0 with a relative error below 2e-7 (1.5 ulp); 0 below -125, NaN stays.
[[gnu::always_inline]] inline Floats power_of_two(Floats x) {
  // 1.5 * 2^23 + 127: adding it rounds to an integer and leaves the biased exponent of the result in the low bits.
  const Floats magic = simd::splat(12583039.0F);
  const Floats shifted = x + magic;
  const Floats r = x - (shifted - magic);
  Floats p = simd::splat(1.3264727e-3F);  // minimax on [-1/2, 1/2]
  p = simd::fma(p, r, simd::splat(9.6715130e-3F));
  p = simd::fma(p, r, simd::splat(5.5507336e-2F));
  p = simd::fma(p, r, simd::splat(2.4022242e-1F));
  p = simd::fma(p, r, simd::splat(6.9314700e-1F));
  p = simd::fma(p, r, simd::splat(1.0F));
  const Floats scale = (Floats)((Ints)shifted << 23);
  return x < simd::splat(-125.0F) ? Floats{} : p * scale;
}

[[gnu::always_inline]] inline Ints lane_numbers() {
  Ints lanes{};
  for (int i = 0; i < kWidth; ++i) lanes[i] = i;
  return lanes;
}

// What a row carries from one block of keys to the next.
struct RowState {
  float maximum = -kInfinity;
  float sum = 0;
};

// Rows of a block stand at a multiple of the vector's width, with room up to the next one.
[[nodiscard]] constexpr std::int64_t padded(std::int64_t count) { return (count + kWidth - 1) / kWidth * kWidth; }

// Turns `valid` scores into 2^(score - maximum), and sets those after them up to `total` to 0. What was summed up so
// far has to be multiplied by the result. A row without any key above -inf keeps the sum 0.
[[nodiscard]] inline float soften_row(float* row, std::int64_t valid, std::int64_t total, RowState* state) {
  const std::int64_t whole = valid / kWidth * kWidth;
  Floats highest = simd::splat(state->maximum);
  for (std::int64_t j = 0; j < whole; j += kWidth) highest = simd::max(simd::load(row + j), highest);
  Floats last{};
  if (whole < valid) {
    last = lane_numbers() < static_cast<std::int32_t>(valid - whole) ? simd::load(row + whole) : -kInfinity;
    highest = simd::max(last, highest);
  }
  const float maximum = simd::max_lanes<float>(highest);
  const float base = maximum == -kInfinity ? 0.0F : maximum;
  Floats sums{};
  for (std::int64_t j = 0; j < whole; j += kWidth) {
    const Floats p = power_of_two(simd::load(row + j) - base);
    simd::store(row + j, p);
    sums += p;
  }
  if (whole < valid) {
    const Floats p = power_of_two(last - base);
    simd::store(row + whole, p);
    sums += p;
  }
  for (std::int64_t j = padded(valid); j < total; ++j) row[j] = 0;
  const float before = state->maximum;
  const float rescale = before == maximum ? 1.0F : power_of_two(simd::splat(before - base))[0];
  state->maximum = maximum;
  state->sum = state->sum * rescale + simd::sum_lanes<float>(sums);
  return rescale;
}

inline void scale_row(float* row, std::int64_t count, float factor) {
  std::int64_t j = 0;
  for (; j + kWidth <= count; j += kWidth) simd::store(row + j, simd::load(row + j) * factor);
  if (j < count) {
    const int left = static_cast<int>(count - j);
    simd::store_first(row + j, simd::load_first(row + j, left) * factor, left);
  }
}

// 1 / sum; a row that sees no key gives zeros, as PyTorch's safe softmax does.
[[nodiscard]] inline float inverse_sum(const RowState& state) { return state.sum == 0 ? 0.0F : 1.0F / state.sum; }

}  // namespace wb::engine::WB_ISA::attention
