// Parts of tiles of products of integers: a step of the sums, and the end.
#pragma once

#include <algorithm>

#include "engine/operators/quantized_matmul/tile.h"

namespace wb::engine::WB_ISA::quantized {

// n <= 4 kFloats bytes.
template <typename Q>
[[gnu::always_inline]] inline void copy_first(Q* to, const Q* from, int n) {
#pragma GCC unroll 8
  for (int piece = 4 * kFloats; piece > 0; piece /= 2) {
    if ((n & piece) == 0) continue;
    std::memcpy(to, from, static_cast<std::size_t>(piece));
    to += piece;
    from += piece;
  }
}

// The first n of 4 kFloats integers.
template <typename Q>
[[gnu::always_inline]] inline void store_narrowed_first(Q* p, Ints a, Ints b, Ints c, Ints d, int n) {
#if defined(WB_ISA_avx512)
  const __m512i ab = _mm512_packs_epi32((__m512i)a, (__m512i)b);
  const __m512i cd = _mm512_packs_epi32((__m512i)c, (__m512i)d);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = std::is_same_v<Q, std::int8_t> ? _mm512_packs_epi16(ab, cd) : _mm512_packus_epi16(ab, cd);
  _mm512_mask_storeu_epi8(p, ~std::uint64_t{0} >> (64 - n), _mm512_maskz_permutexvar_epi32(kAll, order, bytes));
#else
  Q all[4 * kFloats];
  store_narrowed(all, a, b, c, d);
  copy_first(p, all, n);
#endif
}

// Rows R, vectors V: sum += a b for one step, or the two that share bytes.
template <int R, int V, bool Nibbles>
[[gnu::always_inline]] inline void step(Ints (&sums)[R][V], const DotLeft* a, std::int64_t lda, const std::int8_t* b,
                                        kernels::WB_ISA::DotBytes zero) {
  if constexpr (Nibbles) {
    using Unsigned = std::uint8_t __attribute__((vector_size(kDotBytes)));
    Ints low[V];
    Ints high[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const auto pairs = (Unsigned)kernels::WB_ISA::load_dot_bytes(b + v * kDotBytes);
      low[v] = dot_right((kernels::WB_ISA::DotBytes)(pairs & 15) - zero);
      high[v] = dot_right((kernels::WB_ISA::DotBytes)(pairs >> 4) - zero);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Ints first = dot_left(a + r * lda);
      const Ints second = dot_left(a + r * lda + kDotDepth);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = dot(dot(sums[r][v], first, low[v]), second, high[v]);
    }
  } else {
    Ints right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) right[v] = dot_right(b + v * kDotBytes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Ints left = dot_left(a + r * lda);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = dot(sums[r][v], left, right[v]);
    }
  }
}

#if defined(WB_ISA_avx512)
// The first n bytes. Stores with a mask take long where it is one of bytes.
[[gnu::always_inline]] inline void store_first_bytes(void* to, __m512i bytes, int n) {
  if (n == 64) {
    _mm512_storeu_si512(to, bytes);
    return;
  }
  auto* at = static_cast<std::byte*>(to);
  __m256i part = _mm512_maskz_extracti64x4_epi64(0xff, bytes, 0);
  if ((n & 32) != 0) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), part);
    part = _mm512_maskz_extracti64x4_epi64(0xff, bytes, 1);
    at += 32;
  }
  if ((n & 31) == 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm256_castsi256_si128(part));
  } else if ((n & 31) != 0) {
    _mm256_mask_storeu_epi8(at, (1U << (n & 31)) - 1U, part);
  }
}
#endif

// Integers of 16 bits: a's and b's in the order in which they are packed fast; whatever does not fit is cut.
using Shorts = std::int16_t __attribute__((vector_size(kernels::WB_ISA::kVectorBytes)));
[[gnu::always_inline]] inline Shorts shorts_of(Ints a, Ints b) {
#if defined(WB_ISA_avx512)
  return (Shorts)_mm512_packs_epi32((__m512i)a, (__m512i)b);
#elif defined(WB_ISA_avx2)
  return (Shorts)_mm256_packs_epi32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Shorts)_mm_packs_epi32((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
  return (Shorts)vcombine_s16(vqmovn_s32((int32x4_t)a), vqmovn_s32((int32x4_t)b));
#else
  Shorts result{};
  for (int i = 0; i < 2 * kFloats; ++i) {
    const std::int32_t x = i < kFloats ? a[i] : b[i - kFloats];
    result[i] = static_cast<std::int16_t>(x < -32768 ? -32768 : x > 32767 ? 32767 : x);
  }
  return result;
#endif
}

// To the nearest integer, to even where two are; |x| < 2^31 and no NaN.
[[gnu::always_inline]] inline Ints nearest_finite(Floats x) {
#if defined(WB_ISA_avx512)
  return (Ints)_mm512_maskz_cvtps_epi32(kAll, (__m512)x);
#elif defined(WB_ISA_avx2)
  return (Ints)_mm256_cvtps_epi32((__m256)x);
#elif defined(__SSE2__)
  return (Ints)_mm_cvtps_epi32((__m128)x);
#else
  return nearest(x);
#endif
}

// What numbers in units of the result's scale become (Store::direct), before they are packed to bytes.
struct DirectBytes {
  std::int16_t low, high, zero;

  explicit DirectBytes(const Store& s)
      : low(static_cast<std::int16_t>(s.low)),
        high(static_cast<std::int16_t>(s.high)),
        zero(static_cast<std::int16_t>(s.zero)) {}
  [[gnu::always_inline]] Shorts operator()(Floats a, Floats b) const {
    const Shorts x = shorts_of(nearest_finite(a), nearest_finite(b));
    const Shorts least = low - Shorts{};
    const Shorts most = high - Shorts{};
    const Shorts cut = x < least ? least : x > most ? most : x;
    return cut + zero;
  }
};

// The first n of 4 kFloats bytes: those of vectors 0 and 1, then of 2 and 3.
template <typename Q>
[[gnu::always_inline]] inline void store_direct(Q* to, Shorts ab, Shorts cd, int n) {
#if defined(WB_ISA_avx512)
  constexpr bool kSigned = std::is_same_v<Q, std::int8_t>;
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i packed =
      kSigned ? _mm512_packs_epi16((__m512i)ab, (__m512i)cd) : _mm512_packus_epi16((__m512i)ab, (__m512i)cd);
  const __m512i bytes = _mm512_maskz_permutexvar_epi32(kAll, order, packed);
  store_first_bytes(to, bytes, n);
#else
  Q all[4 * kFloats];
#if defined(WB_ISA_avx2)
  constexpr bool kSigned = std::is_same_v<Q, std::int8_t>;
  const __m256i packed =
      kSigned ? _mm256_packs_epi16((__m256i)ab, (__m256i)cd) : _mm256_packus_epi16((__m256i)ab, (__m256i)cd);
  const __m256i bytes = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  if (n == 2 * kFloats) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(bytes));
    return;
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(all), bytes);
#else
  using Bytes = std::int8_t __attribute__((vector_size(2 * kFloats)));  // they fit: cutting bits off is enough
  const Bytes low = __builtin_convertvector(ab, Bytes);
  const Bytes high = __builtin_convertvector(cd, Bytes);
  std::memcpy(all, &low, sizeof(low));
  std::memcpy(all + sizeof(low), &high, sizeof(high));
#endif
  copy_first(to, all, n);
#endif
}

template <typename Q>
[[gnu::always_inline]] inline void store_bytes(Q* to, const Ints (&q)[4], int width) {
  if (width == 4 * kFloats) {
    store_narrowed(to, q[0], q[1], q[2], q[3]);
  } else {
    store_narrowed_first(to, q[0], q[1], q[2], q[3], width);
  }
}

// Stores row r of the tile, V vectors of numbers.
template <int V>
[[gnu::always_inline]] inline void store_row(const Tile& tile, int r, const Floats (&numbers)[V]) {
  const Store& s = tile.store;
  if (!s.bytes) {
    float* c = static_cast<float*>(tile.c) + r * tile.ldc;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Floats x = at_most(at_least(numbers[v], s.low), s.high);
      const int left = tile.width - v * kFloats;
      if (left >= kFloats) {
        store(c + v * kFloats, x);
      } else if (left > 0) {
        store_first(c + v * kFloats, x, left);
      }
    }
    return;
  }
  if (s.direct) {
    const DirectBytes bytes(s);
    const Shorts ab = bytes(numbers[0], V > 1 ? numbers[V > 1 ? 1 : 0] : Floats{});
    const Shorts cd = V > 2 ? bytes(numbers[V > 2 ? 2 : 0], V > 3 ? numbers[V > 3 ? 3 : 0] : Floats{}) : Shorts{};
    if (s.is_signed) {
      store_direct(static_cast<std::int8_t*>(tile.c) + r * tile.ldc, ab, cd, tile.width);
    } else {
      store_direct(static_cast<std::uint8_t*>(tile.c) + r * tile.ldc, ab, cd, tile.width);
    }
    return;
  }
  Ints q[4] = {};
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    q[v] = nearest(at_most(at_least(numbers[v] * splat(s.inverse), s.low), s.high)) + s.zero;
  }
  if (s.is_signed) {
    store_bytes(static_cast<std::int8_t*>(tile.c) + r * tile.ldc, q, tile.width);
  } else {
    store_bytes(static_cast<std::uint8_t*>(tile.c) + r * tile.ldc, q, tile.width);
  }
}

}  // namespace wb::engine::WB_ISA::quantized
