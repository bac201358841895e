// The innermost loop of products and convolutions: one tile of C = A B in registers, with what is done to its elements
// before they are stored.
//
//   c[r][j] = clamp(start + sum over kk < k of a[r lda + kk] b[kk ldb + j] + residual[r][j]),   r < R, j < V kLanes
//
// where start is c itself, the bias of the column, or 0. Rows of A are read where they stand, one broadcast a row and
// step; B is read in vectors along its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/simd.h"

namespace wb::engine::WB_ISA::dense {

namespace simd = ::wb::kernels::WB_ISA;

inline constexpr int kWidth = simd::kLanes<float>;
using Vector = simd::Vec<float>;

// Rows of tiles two vectors wide (with the two vectors of B they leave a register or two), and of tiles one wide.
inline constexpr int kTileRows = simd::kVectorRegisters == 32 ? 14 : 6;
inline constexpr int kNarrowRows = simd::kVectorRegisters == 32 ? 28 : 12;
inline constexpr int kTileVectors = 2;
inline constexpr int kPanel = kTileVectors * kWidth;  // columns of a panel of B

struct Tile {
  std::int64_t k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  // Rows of A may be of several runs of k elements, `a_step` from the start of one to that of the next.
  std::int64_t runs = 1, a_step = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  const float* bias = nullptr;      // of the columns, or null
  const float* residual = nullptr;  // stands like c, or null
  float low = 0, high = 0;
  bool accumulate = false;  // start from c
  bool clamp = false;
  int tail = kWidth;  // columns of the last vector
  // Memory to bring near meanwhile: a line every other step, `ahead_step` bytes apart. A null pointer does no harm.
  const char* ahead = nullptr;
  std::int64_t ahead_step = 0;
};

// A vector, or its first n elements.
using Whole = std::integral_constant<int, kWidth>;
[[gnu::always_inline]] inline Vector load_some(const float* p, Whole /*n*/) { return simd::load(p); }
[[gnu::always_inline]] inline Vector load_some(const float* p, int n) { return simd::load_first(p, n); }
[[gnu::always_inline]] inline void store_some(float* p, Vector v, Whole /*n*/) { simd::store(p, v); }
[[gnu::always_inline]] inline void store_some(float* p, Vector v, int n) { simd::store_first(p, v, n); }

using TileFunction = void (*)(const Tile& tile);

template <int R, int V>
struct Accumulators {
  Vector acc[R][V];

  [[gnu::always_inline]] static Vector load_part(const float* p, int v, int tail) {
    return v == V - 1 && tail != kWidth ? simd::load_first(p + v * kWidth, tail) : simd::load(p + v * kWidth);
  }

  [[gnu::always_inline]] void start(const Tile& tile) {
    if (tile.accumulate) {
#pragma GCC unroll 28
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[r][v] = load_part(tile.c + r * tile.ldc, v, tile.tail);
      }
      return;
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Vector bias = tile.bias != nullptr ? load_part(tile.bias, v, tile.tail) : Vector{};
#pragma GCC unroll 28
      for (int r = 0; r < R; ++r) acc[r][v] = bias;
    }
  }

  // Three rows share a pointer: the others are base + lda and base + 2 lda, which are address modes.
  [[gnu::always_inline]] void step(const float* const* rows, std::int64_t lda, int kk, const float* b) {
    Vector bv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) bv[v] = simd::load(b + v * kWidth);
#pragma GCC unroll 28
    for (int r = 0; r < R; ++r) {
      const Vector av = simd::splat(rows[r / 3][(r % 3) * lda + kk]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = simd::fma(av, bv[v], acc[r][v]);
    }
  }

  [[gnu::always_inline]] void finish(const Tile& tile) {
    if (tile.residual != nullptr) {
#pragma GCC unroll 28
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[r][v] += load_part(tile.residual + r * tile.ldc, v, tile.tail);
      }
    }
    if (tile.clamp) {
      const Vector low = simd::splat(tile.low);
      const Vector high = simd::splat(tile.high);
#pragma GCC unroll 28
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[r][v] = simd::min(high, simd::max(low, acc[r][v]));
      }
    }
#pragma GCC unroll 28
    for (int r = 0; r < R; ++r) {
      float* const c = tile.c + r * tile.ldc;
#pragma GCC unroll 4
      for (int v = 0; v < V - 1; ++v) simd::store(c + v * kWidth, acc[r][v]);
      if (tile.tail == kWidth) {
        simd::store(c + (V - 1) * kWidth, acc[r][V - 1]);
      } else {
        simd::store_first(c + (V - 1) * kWidth, acc[r][V - 1], tile.tail);
      }
    }
  }
};

template <int R, int V>
void tile_product(const Tile& tile) {
  constexpr int kGroups = (R + 2) / 3;
  Accumulators<R, V> acc;
  acc.start(tile);
  const std::int64_t lda = tile.lda;
  const std::int64_t ldb = tile.ldb;
  const float* b = tile.b;
  const char* ahead = tile.ahead;
  const std::int64_t ahead_step = tile.ahead_step;
  const float* a = tile.a;
  for (std::int64_t run = tile.runs; run > 0; --run) {
    const float* rows[kGroups];
#pragma GCC unroll 12
    for (int g = 0; g < kGroups; ++g) rows[g] = a + 3 * g * lda;
    a += tile.a_step;
    std::int64_t left = tile.k;
    for (; left >= 4; left -= 4) {
      __builtin_prefetch(ahead, 0, 2);
      acc.step(rows, lda, 0, b);
      acc.step(rows, lda, 1, b + ldb);
      __builtin_prefetch(ahead + ahead_step, 0, 2);
      acc.step(rows, lda, 2, b + 2 * ldb);
      acc.step(rows, lda, 3, b + 3 * ldb);
      ahead += 2 * ahead_step;
      b += 4 * ldb;
#pragma GCC unroll 12
      for (int g = 0; g < kGroups; ++g) rows[g] += 4;
    }
    for (; left > 0; --left) {
      acc.step(rows, lda, 0, b);
      b += ldb;
#pragma GCC unroll 12
      for (int g = 0; g < kGroups; ++g) rows[g] += 1;
    }
  }
  acc.finish(tile);
}

// The function for `rows` rows (1 ... kTileRows, or kNarrowRows if `vectors` is 1).
[[nodiscard]] TileFunction tile_function(int rows, int vectors);

}  // namespace wb::engine::WB_ISA::dense
