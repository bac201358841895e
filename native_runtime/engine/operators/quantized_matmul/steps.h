// Parts of tiles of products of integers: a step of the sums, and the end.
#pragma once

#include <algorithm>

#include "engine/operators/quantized_matmul/tile.h"

namespace wb::engine::WB_ISA::quantized {

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
  const Q* from = all;
  for (int piece = 2 * kFloats; piece > 0; piece /= 2) {
    if ((n & piece) == 0) continue;
    for (int i = 0; i < piece; ++i) p[i] = from[i];
    p += piece;
    from += piece;
  }
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
