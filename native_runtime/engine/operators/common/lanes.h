// What the vector extension of GCC has no operator for, on vectors of float: one instruction where there is one.
#pragma once

#include "kernels/simd.h"

namespace wb::engine::WB_ISA {

using kernels::WB_ISA::fma;
using kernels::WB_ISA::kLanes;
using kernels::WB_ISA::kVectorBytes;
using kernels::WB_ISA::load;
using kernels::WB_ISA::load_first;
using kernels::WB_ISA::splat;
using kernels::WB_ISA::store;
using kernels::WB_ISA::store_first;
using kernels::WB_ISA::Vec;

using Floats = Vec<float>;
using Ints = Vec<std::int32_t>;
inline constexpr int kFloats = kLanes<float>;
#if defined(WB_ISA_avx512)
// The intrinsics without a mask start from a vector that GCC 12 takes for uninitialized.
inline constexpr __mmask16 kAll = 0xffff;
#endif

[[gnu::always_inline]] inline Floats sqrt(Floats x) {
#if defined(WB_ISA_avx512)
  return (Floats)_mm512_maskz_sqrt_ps(kAll, (__m512)x);
#elif defined(WB_ISA_avx2)
  return (Floats)_mm256_sqrt_ps((__m256)x);
#elif defined(WB_ISA_neon)
  return (Floats)vsqrtq_f32((float32x4_t)x);
#elif defined(__SSE2__)
  return (Floats)_mm_sqrt_ps((__m128)x);
#else
  for (int i = 0; i < kFloats; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

// x where x is NaN.
[[gnu::always_inline]] inline Floats at_least(Floats x, float low) {
#if defined(WB_ISA_avx512)
  return (Floats)_mm512_maskz_max_ps(kAll, _mm512_set1_ps(low), (__m512)x);
#elif defined(WB_ISA_avx2)
  return (Floats)_mm256_max_ps(_mm256_set1_ps(low), (__m256)x);
#elif defined(WB_ISA_neon)
  return (Floats)vmaxq_f32((float32x4_t)x, vdupq_n_f32(low));
#elif defined(__SSE2__)
  return (Floats)_mm_max_ps(_mm_set1_ps(low), (__m128)x);
#else
  return x < low ? splat(low) : x;
#endif
}
[[gnu::always_inline]] inline Floats at_most(Floats x, float high) {
#if defined(WB_ISA_avx512)
  return (Floats)_mm512_maskz_min_ps(kAll, _mm512_set1_ps(high), (__m512)x);
#elif defined(WB_ISA_avx2)
  return (Floats)_mm256_min_ps(_mm256_set1_ps(high), (__m256)x);
#elif defined(WB_ISA_neon)
  return (Floats)vminq_f32((float32x4_t)x, vdupq_n_f32(high));
#elif defined(__SSE2__)
  return (Floats)_mm_min_ps(_mm_set1_ps(high), (__m128)x);
#else
  return x > high ? splat(high) : x;
#endif
}

// 0, 1, 2, ...
[[gnu::always_inline]] inline Ints lane_numbers() {
  Ints numbers{};
  for (int i = 0; i < kFloats; ++i) numbers[i] = i;
  return numbers;
}
// The first n lanes of a, the others of b.
[[gnu::always_inline]] inline Floats first_lanes(Floats a, Floats b, int n) { return lane_numbers() < n ? a : b; }

// Is a lane of a comparison true?
[[gnu::always_inline]] inline bool any(Ints mask) {
#if defined(WB_ISA_avx512)
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(WB_ISA_avx2)
  return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps((__m128)mask) != 0;
#else
  std::int32_t all = 0;
  for (int i = 0; i < kFloats; ++i) all |= mask[i];
  return all != 0;
#endif
}

template <int kStep>
constexpr Ints exchanged_lanes() {
  Ints lanes{};
  for (int i = 0; i < kFloats; ++i) lanes[i] = i ^ kStep;
  return lanes;
}
// All lanes joined to one, by halves.
template <int kStep = kFloats / 2, typename F>
[[gnu::always_inline]] inline float across(Floats v, const F& join) {
  if constexpr (kStep == 0) {
    return v[0];
  } else {
    return across<kStep / 2>(join(v, __builtin_shuffle(v, exchanged_lanes<kStep>())), join);
  }
}
[[gnu::always_inline]] inline float sum_of(Floats v) {
  return across(v, [](Floats a, Floats b) { return a + b; });
}
[[gnu::always_inline]] inline float largest_of(Floats v) {
  return across(v, [](Floats a, Floats b) { return a > b ? a : b; });
}

[[gnu::always_inline]] inline Ints bits_of(Floats x) { return (Ints)x; }
[[gnu::always_inline]] inline Floats from_bits(Ints x) { return (Floats)x; }

[[gnu::always_inline]] inline Floats abs(Floats x) { return from_bits(bits_of(x) & 0x7fffffff); }
// |x| with the sign of y
[[gnu::always_inline]] inline Floats copysign(Floats x, Floats y) {
  return from_bits((bits_of(x) & 0x7fffffff) | (bits_of(y) & static_cast<std::int32_t>(0x80000000)));
}

// To the nearest integer, to even where two are; infinities, NaN and the sign of zero stay.
[[gnu::always_inline]] inline Floats round_even(Floats x) {
#if defined(WB_ISA_avx512)
  return (Floats)_mm512_maskz_roundscale_ps(kAll, (__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(WB_ISA_avx2)
  return (Floats)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(WB_ISA_neon)
  return (Floats)vrndnq_f32((float32x4_t)x);
#else
  const Floats a = abs(x);
  const Floats rounded = (a + 8388608.0F) - 8388608.0F;  // 2^23: no fraction is left
  return a < 8388608.0F ? copysign(rounded, x) : x;
#endif
}
[[gnu::always_inline]] inline Floats trunc(Floats x) {
#if defined(WB_ISA_avx512)
  return (Floats)_mm512_maskz_roundscale_ps(kAll, (__m512)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(WB_ISA_avx2)
  return (Floats)_mm256_round_ps((__m256)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(WB_ISA_neon)
  return (Floats)vrndq_f32((float32x4_t)x);
#else
  const Floats a = abs(x);
  const Floats rounded = (a + 8388608.0F) - 8388608.0F;
  const Floats down = rounded > a ? rounded - 1.0F : rounded;
  return a < 8388608.0F ? copysign(down, x) : x;
#endif
}
[[gnu::always_inline]] inline Floats floor(Floats x) {
  const Floats t = trunc(x);
  return t > x ? t - 1.0F : t;
}
[[gnu::always_inline]] inline Floats ceil(Floats x) {
  const Floats t = trunc(x);
  return copysign(t < x ? t + 1.0F : t, x);
}

// x 2^n for whole n in [-252, 254], as if rounded once but for subnormal results.
[[gnu::always_inline]] inline Floats scale_by_power(Floats x, Floats n) {
#if defined(WB_ISA_avx512)
  return (Floats)_mm512_maskz_scalef_ps(kAll, (__m512)x, (__m512)n);
#else
  const Ints whole = __builtin_convertvector(n, Ints);
  const Ints half = whole >> 1;
  return x * from_bits((half + 127) << 23) * from_bits((whole - half + 127) << 23);
#endif
}

}  // namespace wb::engine::WB_ISA
