// Blocks of channels for depthwise convolutions: the bytes of kDotDepth pixels side by side, a channel a lane, so that
// one dot product multiplies as many taps; and sums back to bytes in the order of the channels. How the lanes of a
// block's vectors stand follows from what interleaves fast.
#pragma once

#include "engine/operators/quantized_matmul/left.h"
#include "engine/operators/quantized_matmul/steps.h"

namespace wb::engine::WB_ISA::quantized {

#if defined(WB_ISA_avx512) || defined(WB_ISA_neon)
inline constexpr int kSpreadVectors = 4;
#else
inline constexpr int kSpreadVectors = 2;
#endif
inline constexpr int kSpreadChannels = kSpreadVectors * kFloats;

// The channel of lane i of vector v.
[[nodiscard]] constexpr int spread_channel(int v, int i) {
#if defined(WB_ISA_avx512)
  return i / 4 * 16 + v * 4 + i % 4;
#elif defined(WB_ISA_avx2)
  return i / 4 * 8 + v * 4 + i % 4;
#else
  return v * 4 + i;
#endif
}

namespace spreading {
#if defined(WB_ISA_avx512)
using Pixel = __m512i;
template <bool Whole>
[[gnu::always_inline]] inline Pixel load_pixel(const std::uint8_t* p, int n, std::uint8_t flip) {
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(flip));
  if constexpr (Whole) return _mm512_xor_si512(_mm512_loadu_si512(p), mask);
  return _mm512_xor_si512(_mm512_maskz_loadu_epi8(~std::uint64_t{0} >> (64 - n), p), mask);
}
#else
// Of AVX2 and the baseline as int16 already.
using Pixel = DotLeft __attribute__((vector_size(kSpreadChannels * sizeof(DotLeft))));
template <bool Whole>
[[gnu::always_inline]] inline Pixel load_pixel(const std::uint8_t* p, int n, std::uint8_t flip) {
  using Bytes = std::uint8_t __attribute__((vector_size(kSpreadChannels)));
  using Signed = std::int8_t __attribute__((vector_size(kSpreadChannels)));
  Bytes bytes{};
  if constexpr (Whole) {
    std::memcpy(&bytes, p, kSpreadChannels);
  } else {
    std::memcpy(&bytes, p, static_cast<std::size_t>(n));
  }
  return __builtin_convertvector((Signed)(bytes ^ flip), Pixel);
}
#endif
}  // namespace spreading

// Pixels p[0] ... p[Count - 1] (there may be fewer than kDotDepth) side by side; n channels, all if Whole.
template <int Count, bool Whole>
[[gnu::always_inline]] inline void spread(const std::uint8_t* const (&p)[Count], int n, std::uint8_t flip,
                                          Ints (&to)[kSpreadVectors]) {
  spreading::Pixel x[4] = {};
#pragma GCC unroll 4
  for (int i = 0; i < Count; ++i) x[i] = spreading::load_pixel<Whole>(p[i], n, flip);
#if defined(WB_ISA_avx512)
  const __m512i low01 = _mm512_unpacklo_epi8(x[0], x[1]);
  const __m512i high01 = _mm512_unpackhi_epi8(x[0], x[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(x[2], x[3]);
  const __m512i high23 = _mm512_unpackhi_epi8(x[2], x[3]);
  to[0] = (Ints)_mm512_unpacklo_epi16(low01, low23);
  to[1] = (Ints)_mm512_unpackhi_epi16(low01, low23);
  to[2] = (Ints)_mm512_unpacklo_epi16(high01, high23);
  to[3] = (Ints)_mm512_unpackhi_epi16(high01, high23);
#elif defined(WB_ISA_neon)
  const int8x16_t low01 = vzip1q_s8((int8x16_t)x[0], (int8x16_t)x[1]);
  const int8x16_t high01 = vzip2q_s8((int8x16_t)x[0], (int8x16_t)x[1]);
  const int8x16_t low23 = vzip1q_s8((int8x16_t)x[2], (int8x16_t)x[3]);
  const int8x16_t high23 = vzip2q_s8((int8x16_t)x[2], (int8x16_t)x[3]);
  to[0] = (Ints)vzip1q_s16((int16x8_t)low01, (int16x8_t)low23);
  to[1] = (Ints)vzip2q_s16((int16x8_t)low01, (int16x8_t)low23);
  to[2] = (Ints)vzip1q_s16((int16x8_t)high01, (int16x8_t)high23);
  to[3] = (Ints)vzip2q_s16((int16x8_t)high01, (int16x8_t)high23);
#elif defined(WB_ISA_avx2)
  to[0] = (Ints)_mm256_unpacklo_epi16((__m256i)x[0], (__m256i)x[1]);
  to[1] = (Ints)_mm256_unpackhi_epi16((__m256i)x[0], (__m256i)x[1]);
#else
  using Lanes = std::int16_t __attribute__((vector_size(16)));
  to[0] = (Ints)__builtin_shuffle(x[0], x[1], Lanes{0, 8, 1, 9, 2, 10, 3, 11});
  to[1] = (Ints)__builtin_shuffle(x[0], x[1], Lanes{4, 12, 5, 13, 6, 14, 7, 15});
#endif
}

// A block of integers (shorts_of vectors 0 and 1, then 2 and 3), none of which needs more than a byte, to n bytes in
// the order of the channels.
template <typename Q, bool Whole>
[[gnu::always_inline]] inline void store_spread(Q* to, const Shorts (&q)[kSpreadVectors / 2], int n) {
#if defined(WB_ISA_avx512)
  constexpr bool kSigned = std::is_same_v<Q, std::int8_t>;
  const __m512i bytes =
      kSigned ? _mm512_packs_epi16((__m512i)q[0], (__m512i)q[1]) : _mm512_packus_epi16((__m512i)q[0], (__m512i)q[1]);
  if constexpr (Whole) {
    _mm512_storeu_si512(to, bytes);
  } else {
    store_first_bytes(to, bytes, n);
  }
#else
  Q bytes[kSpreadChannels];
#if defined(WB_ISA_avx2)
  constexpr bool kSigned = std::is_same_v<Q, std::int8_t>;
  const __m128i low = _mm256_castsi256_si128((__m256i)q[0]);
  const __m128i high = _mm256_extracti128_si256((__m256i)q[0], 1);
  const __m128i all = kSigned ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
  std::memcpy(bytes, &all, sizeof(all));
#else
  using Bytes = std::int8_t __attribute__((vector_size(2 * kFloats)));
  for (int v = 0; v < kSpreadVectors / 2; ++v) {
    const Bytes part = __builtin_convertvector(q[v], Bytes);
    std::memcpy(bytes + v * 2 * kFloats, &part, sizeof(part));
  }
#endif
  std::memcpy(to, bytes, Whole ? kSpreadChannels : static_cast<std::size_t>(n));
#endif
}

}  // namespace wb::engine::WB_ISA::quantized
