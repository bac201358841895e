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
  int tail = kWidth;  // columns of the last vector, or of the last half of one
  // Memory to bring near meanwhile: a line every step, `ahead_step` bytes apart. A null pointer does no harm.
  const char* ahead = nullptr;
  std::int64_t ahead_step = 0;
};

// A vector, or its first n elements.
using Whole = std::integral_constant<int, kWidth>;
[[gnu::always_inline]] inline Vector load_some(const float* p, Whole /*n*/) { return simd::load(p); }
[[gnu::always_inline]] inline Vector load_some(const float* p, int n) { return simd::load_first(p, n); }
[[gnu::always_inline]] inline void store_some(float* p, Vector v, Whole /*n*/) { simd::store(p, v); }
[[gnu::always_inline]] inline void store_some(float* p, Vector v, int n) { simd::store_first(p, v, n); }

// Half a vector, where instructions on halves cost half.
#if defined(WB_ISA_avx512)
inline constexpr int kUnit = kWidth / 2;
#else
inline constexpr int kUnit = kWidth;
#endif
typedef float HalfVector __attribute__((vector_size(kUnit * sizeof(float))));
typedef float HalfInMemory __attribute__((vector_size(kUnit * sizeof(float)), aligned(alignof(float)), may_alias));

using TileFunction = void (*)(const Tile& tile);

// The last vector of a tile's rows: a whole one or half of one, of which `tail` columns exist.
struct WholeLast {
  using Type = Vector;
  static constexpr int kColumns = kWidth;
  [[gnu::always_inline]] static Type load(const float* p) { return simd::load(p); }
  [[gnu::always_inline]] static Type load(const float* p, int tail) {
    return tail != kColumns ? simd::load_first(p, tail) : simd::load(p);
  }
  [[gnu::always_inline]] static void store(float* p, Type v, int tail) {
    if (tail != kColumns) {
      simd::store_first(p, v, tail);
    } else {
      simd::store(p, v);
    }
  }
  [[gnu::always_inline]] static Type splat(float x) { return simd::splat(x); }
  [[gnu::always_inline]] static Type fma(Type a, Type b, Type c) { return simd::fma(a, b, c); }
};

#if defined(WB_ISA_avx512)
struct HalfLast {
  using Type = HalfVector;
  static constexpr int kColumns = kUnit;
  [[gnu::always_inline]] static __mmask8 mask(int n) { return static_cast<__mmask8>((1U << n) - 1U); }
  [[gnu::always_inline]] static Type load(const float* p) { return *reinterpret_cast<const HalfInMemory*>(p); }
  [[gnu::always_inline]] static Type load(const float* p, int tail) {
    return tail != kColumns ? (Type)_mm256_maskz_loadu_ps(mask(tail), p) : load(p);
  }
  [[gnu::always_inline]] static void store(float* p, Type v, int tail) {
    if (tail != kColumns) {
      _mm256_mask_storeu_ps(p, mask(tail), (__m256)v);
    } else {
      *reinterpret_cast<HalfInMemory*>(p) = v;
    }
  }
  [[gnu::always_inline]] static Type splat(float x) { return x - Type{}; }
  [[gnu::always_inline]] static Type fma(Type a, Type b, Type c) {
    return (Type)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  }
};
#else
using HalfLast = WholeLast;
#endif

// R rows of V vectors, the last one of type Last.
template <int R, int V, typename Last = WholeLast>
struct Accumulators {
  static constexpr int kWhole = V - 1;
  using LastVector = typename Last::Type;
  Vector acc[R][V];  // the last one is not used
  LastVector last[R];

  [[gnu::always_inline]] void start(const Tile& tile) {
    if (tile.accumulate) {
#pragma GCC unroll 28
      for (int r = 0; r < R; ++r) {
        const float* c = tile.c + r * tile.ldc;
#pragma GCC unroll 4
        for (int v = 0; v < kWhole; ++v) acc[r][v] = simd::load(c + v * kWidth);
        last[r] = Last::load(c + kWhole * kWidth, tile.tail);
      }
      return;
    }
#pragma GCC unroll 4
    for (int v = 0; v < kWhole; ++v) {
      const Vector bias = tile.bias != nullptr ? simd::load(tile.bias + v * kWidth) : Vector{};
#pragma GCC unroll 28
      for (int r = 0; r < R; ++r) acc[r][v] = bias;
    }
    const LastVector bias = tile.bias != nullptr ? Last::load(tile.bias + kWhole * kWidth, tile.tail) : LastVector{};
#pragma GCC unroll 28
    for (int r = 0; r < R; ++r) last[r] = bias;
  }

  // Three rows share a pointer: the others are base + lda and base + 2 lda, which are address modes.
  [[gnu::always_inline]] void step(const float* const* rows, std::int64_t lda, int kk, const float* b) {
    Vector bv[V];
#pragma GCC unroll 4
    for (int v = 0; v < kWhole; ++v) bv[v] = simd::load(b + v * kWidth);
    const LastVector bl = Last::load(b + kWhole * kWidth);
#pragma GCC unroll 28
    for (int r = 0; r < R; ++r) {
      const float a = rows[r / 3][(r % 3) * lda + kk];
#pragma GCC unroll 4
      for (int v = 0; v < kWhole; ++v) acc[r][v] = simd::fma(simd::splat(a), bv[v], acc[r][v]);
      last[r] = Last::fma(Last::splat(a), bl, last[r]);
    }
  }

  [[gnu::always_inline]] void finish(const Tile& tile) {
    if (tile.residual != nullptr) {
#pragma GCC unroll 28
      for (int r = 0; r < R; ++r) {
        const float* residual = tile.residual + r * tile.ldc;
#pragma GCC unroll 4
        for (int v = 0; v < kWhole; ++v) acc[r][v] += simd::load(residual + v * kWidth);
        last[r] += Last::load(residual + kWhole * kWidth, tile.tail);
      }
    }
    if (tile.clamp) {
#pragma GCC unroll 28
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kWhole; ++v) {
          acc[r][v] = simd::min(simd::splat(tile.high), simd::max(simd::splat(tile.low), acc[r][v]));
        }
        last[r] = simd::min(Last::splat(tile.high), simd::max(Last::splat(tile.low), last[r]));
      }
    }
#pragma GCC unroll 28
    for (int r = 0; r < R; ++r) {
      float* const c = tile.c + r * tile.ldc;
#pragma GCC unroll 4
      for (int v = 0; v < kWhole; ++v) simd::store(c + v * kWidth, acc[r][v]);
      Last::store(c + kWhole * kWidth, last[r], tile.tail);
    }
  }
};

// Tiles of so few rows wait for B in any case: then the processor's own prefetching, of one stream, is best left alone
// (97 GB/s from the third-level cache of Zen 4, 75 with prefetches).
inline constexpr int kStreamRows = 2;

template <int R, int V, typename Last = WholeLast>
void tile_product(const Tile& tile) {
  constexpr bool kBringNear = R > kStreamRows;
  constexpr int kGroups = (R + 2) / 3;
  Accumulators<R, V, Last> acc;
  acc.start(tile);
  const std::int64_t lda = tile.lda;
  const std::int64_t ldb = tile.ldb;
  const float* b = tile.b;
  [[maybe_unused]] const char* ahead = tile.ahead;
  [[maybe_unused]] const std::int64_t ahead_step = tile.ahead_step;
  const float* a = tile.a;
  for (std::int64_t run = tile.runs; run > 0; --run) {
    const float* rows[kGroups];
#pragma GCC unroll 12
    for (int g = 0; g < kGroups; ++g) rows[g] = a + 3 * g * lda;
    a += tile.a_step;
    std::int64_t left = tile.k;
    for (; left >= 4; left -= 4) {
      if constexpr (kBringNear) __builtin_prefetch(ahead, 0, 2);
      acc.step(rows, lda, 0, b);
      if constexpr (kBringNear) __builtin_prefetch(ahead + ahead_step, 0, 2);
      acc.step(rows, lda, 1, b + ldb);
      if constexpr (kBringNear) __builtin_prefetch(ahead + 2 * ahead_step, 0, 2);
      acc.step(rows, lda, 2, b + 2 * ldb);
      if constexpr (kBringNear) __builtin_prefetch(ahead + 3 * ahead_step, 0, 2);
      acc.step(rows, lda, 3, b + 3 * ldb);
      if constexpr (kBringNear) ahead += 4 * ahead_step;
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

// The function for `rows` rows (1 ... kTileRows, or kNarrowRows if `vectors` is 1) of one or two vectors.
[[nodiscard]] TileFunction tile_function(int rows, int vectors);
// The same by columns, a multiple of kUnit.
[[nodiscard]] TileFunction tile_function_of(int rows, int columns);

}  // namespace wb::engine::WB_ISA::dense
