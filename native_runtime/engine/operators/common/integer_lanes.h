// Integers of 8 bits as vectors of int32, and back: one instruction or few where there are some.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/operators/common/lanes.h"

namespace wb::engine::WB_ISA {

template <typename Q>
inline constexpr bool is_byte = std::is_same_v<Q, std::int8_t> || std::is_same_v<Q, std::uint8_t>;

// kFloats elements.
template <typename Q>
[[gnu::always_inline]] inline Ints load_widened(const Q* p) {
  static_assert(is_byte<Q>);
  [[maybe_unused]] constexpr bool kSigned = std::is_same_v<Q, std::int8_t>;
#if defined(WB_ISA_avx512)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return (Ints)(kSigned ? _mm512_maskz_cvtepi8_epi32(kAll, bytes) : _mm512_maskz_cvtepu8_epi32(kAll, bytes));
#elif defined(WB_ISA_avx2)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return (Ints)(kSigned ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
#elif defined(WB_ISA_neon)
  std::uint32_t four;
  std::memcpy(&four, p, 4);
  const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(four));
  if constexpr (kSigned) return (Ints)vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(bytes))));
  return (Ints)vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
#elif defined(__SSE2__)
  std::int32_t four;
  std::memcpy(&four, p, 4);
  const __m128i zero = _mm_setzero_si128();
  const __m128i bytes = _mm_cvtsi32_si128(four);
  if constexpr (kSigned) return (Ints)_mm_srai_epi32(_mm_unpacklo_epi16(zero, _mm_unpacklo_epi8(zero, bytes)), 24);
  return (Ints)_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
#else
  Ints v{};
  for (int i = 0; i < kFloats; ++i) v[i] = p[i];
  return v;
#endif
}

// 4 kFloats elements: whatever does not fit becomes the nearest that does.
template <typename Q>
[[gnu::always_inline]] inline void store_narrowed(Q* p, Ints a, Ints b, Ints c, Ints d) {
  static_assert(is_byte<Q>);
  constexpr bool kSigned = std::is_same_v<Q, std::int8_t>;
#if defined(WB_ISA_avx512)
  const __m512i ab = _mm512_packs_epi32((__m512i)a, (__m512i)b);
  const __m512i cd = _mm512_packs_epi32((__m512i)c, (__m512i)d);
  const __m512i bytes = kSigned ? _mm512_packs_epi16(ab, cd) : _mm512_packus_epi16(ab, cd);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(p, _mm512_maskz_permutexvar_epi32(kAll, order, bytes));
#elif defined(WB_ISA_avx2)
  const __m256i ab = _mm256_packs_epi32((__m256i)a, (__m256i)b);
  const __m256i cd = _mm256_packs_epi32((__m256i)c, (__m256i)d);
  const __m256i bytes = kSigned ? _mm256_packs_epi16(ab, cd) : _mm256_packus_epi16(ab, cd);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permutevar8x32_epi32(bytes, order));
#elif defined(WB_ISA_neon)
  const int16x8_t ab = vcombine_s16(vqmovn_s32((int32x4_t)a), vqmovn_s32((int32x4_t)b));
  const int16x8_t cd = vcombine_s16(vqmovn_s32((int32x4_t)c), vqmovn_s32((int32x4_t)d));
  if constexpr (kSigned) {
    vst1q_s8(reinterpret_cast<int8_t*>(p), vcombine_s8(vqmovn_s16(ab), vqmovn_s16(cd)));
  } else {
    vst1q_u8(reinterpret_cast<uint8_t*>(p), vcombine_u8(vqmovun_s16(ab), vqmovun_s16(cd)));
  }
#elif defined(__SSE2__)
  const __m128i ab = _mm_packs_epi32((__m128i)a, (__m128i)b);
  const __m128i cd = _mm_packs_epi32((__m128i)c, (__m128i)d);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), kSigned ? _mm_packs_epi16(ab, cd) : _mm_packus_epi16(ab, cd));
#else
  constexpr std::int32_t kLow = kSigned ? -128 : 0;
  const Ints all[4] = {a, b, c, d};
  for (int i = 0; i < 4 * kFloats; ++i) {
    const std::int32_t x = all[i / kFloats][i % kFloats];
    p[i] = static_cast<Q>(x < kLow ? kLow : x > kLow + 255 ? kLow + 255 : x);
  }
#endif
}

// To the nearest integer, to even where two are. For |x| < 2^31; NaN gives 0.
[[gnu::always_inline]] inline Ints nearest(Floats x) {
#if defined(WB_ISA_avx512)
  return (Ints)_mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_ORD_Q), (__m512)x);
#elif defined(WB_ISA_avx2)
  const __m256 number = _mm256_cmp_ps((__m256)x, (__m256)x, _CMP_ORD_Q);
  return (Ints)_mm256_and_si256(_mm256_castps_si256(number), _mm256_cvtps_epi32((__m256)x));
#elif defined(WB_ISA_neon)
  return (Ints)vcvtnq_s32_f32((float32x4_t)x);
#elif defined(__SSE2__)
  const __m128 number = _mm_cmpord_ps((__m128)x, (__m128)x);
  return (Ints)_mm_and_si128(_mm_castps_si128(number), _mm_cvtps_epi32((__m128)x));
#else
  return __builtin_convertvector(x == x ? round_even(x) : Floats{}, Ints);
#endif
}

[[gnu::always_inline]] inline Floats floats_of(Ints x) { return __builtin_convertvector(x, Floats); }

}  // namespace wb::engine::WB_ISA
