// Products of integers of 8 bits, summed exactly in int32: kDotDepth neighbours of each lane at a time. The left
// operand is one such group for all lanes, the right one has a group for each.
//
//   AVX-512 VNNI      4 bytes; the left ones are unsigned (there is no instruction for two signed ones)
//   NEON dot product  4 bytes
//   AVX2, baseline    2 bytes as int16: two products of int16 never overflow their sum
#pragma once

#include "kernels/simd.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace wb::kernels::WB_ISA {

using Sums = Vec<std::int32_t>;
inline constexpr int kSums = kLanes<std::int32_t>;

#if defined(WB_ISA_avx512)
inline constexpr int kDotDepth = 4;
using DotLeft = std::uint8_t;  // what is stored of the left operand
#elif defined(WB_ISA_neon)
inline constexpr int kDotDepth = 4;
using DotLeft = std::int8_t;
#else
inline constexpr int kDotDepth = 2;
using DotLeft = std::int16_t;
#endif
inline constexpr bool kDotLeftUnsigned = std::is_same_v<DotLeft, std::uint8_t>;

// The right operand as it is stored: signed bytes, a group for each lane.
inline constexpr int kDotBytes = kSums * kDotDepth;
typedef std::int8_t DotBytes __attribute__((vector_size(kDotBytes)));
typedef std::int8_t DotBytesInMemory __attribute__((vector_size(kDotBytes), aligned(1), may_alias));

[[gnu::always_inline]] inline DotBytes load_dot_bytes(const std::int8_t* p) {
  return *reinterpret_cast<const DotBytesInMemory*>(p);
}

// The right operand as it is multiplied.
[[gnu::always_inline]] inline Sums dot_right(DotBytes bytes) {
#if defined(WB_ISA_avx512) || defined(WB_ISA_neon)
  return (Sums)bytes;
#elif defined(WB_ISA_avx2)
  return (Sums)_mm256_cvtepi8_epi16((__m128i)bytes);
#else
  typedef std::int16_t Shorts __attribute__((vector_size(2 * kDotBytes)));
  return (Sums) __builtin_convertvector(bytes, Shorts);
#endif
}
[[gnu::always_inline]] inline Sums dot_right(const std::int8_t* p) {
#if defined(__SSE2__) && !defined(__AVX2__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return (Sums)_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
#else
  return dot_right(load_dot_bytes(p));
#endif
}

// A group of the left operand, for all lanes.
[[gnu::always_inline]] inline Sums dot_left(const DotLeft* p) {
  std::int32_t group;
  std::memcpy(&group, p, sizeof(group));
  return splat(group);
}

[[gnu::always_inline]] inline Sums dot(Sums sums, Sums left, Sums right) {
#if defined(WB_ISA_avx512)
  return (Sums)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)left, (__m512i)right);
#elif defined(WB_ISA_avx2)
  return sums + (Sums)_mm256_madd_epi16((__m256i)left, (__m256i)right);
#elif defined(WB_ISA_neon)
  return (Sums)vdotq_s32((int32x4_t)sums, (int8x16_t)right, (int8x16_t)left);
#elif defined(__SSE2__)
  return sums + (Sums)_mm_madd_epi16((__m128i)left, (__m128i)right);
#elif defined(__aarch64__)
  const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)left), vget_low_s16((int16x8_t)right));
  const int32x4_t high = vmull_high_s16((int16x8_t)left, (int16x8_t)right);
  return sums + (Sums)vpaddq_s32(low, high);
#else
  return sums + (left << 16 >> 16) * (right << 16 >> 16) + (left >> 16) * (right >> 16);
#endif
}

// Element i < kDotDepth of each lane's group of what dot_right gave.
[[gnu::always_inline]] inline Sums dot_element(Sums right, int i) {
  constexpr int kBits = 32 / kDotDepth;
  return right << (32 - kBits - kBits * i) >> (32 - kBits);
}

}  // namespace wb::kernels::WB_ISA
