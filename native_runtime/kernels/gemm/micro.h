// The innermost loop of all matrix products: one tile of C in registers.
//
//   acc[r][j] = sum over kk < k of a[r a_row + kk] b[kk b_row + j],   r < R, j < V kLanes
//
// Rows of A are read where they stand (one broadcast a row and step); B is read in vectors along its rows.
#pragma once

#include "kernels/simd.h"

namespace wb::kernels::WB_ISA {

// Rows and vectors of the largest tile: R V accumulators, V vectors of B and a broadcast fill the register file.
inline constexpr int kTileRows = kVectorRegisters == 32 ? 12 : 6;
inline constexpr int kTileVectors = 2;
// Of products with few rows, which wait for memory: long rows of B, all accumulators in use.
inline constexpr int kWideRows = 3;
inline constexpr int kWideVectors = kVectorRegisters == 32 ? 8 : 4;

// What becomes of a tile: c = alpha acc + row_bias[r] + col_bias[j] + (accumulate ? c : 0). Biases may be null.
template <typename T>
struct TileOut {
  T* c = nullptr;
  std::int64_t c_row = 0;
  const T* row_bias = nullptr;
  const T* col_bias = nullptr;
  T alpha = 1;
  bool accumulate = false;
};

template <typename T>
using TileFunction = void (*)(std::int64_t k, const T* a, std::int64_t a_row, const T* b, std::int64_t b_row,
                              const TileOut<T>& out);

template <typename T, int R, int V>
struct Tile {
  Vec<T> acc[R][V];

  // Three rows share a pointer: the others are base + a_row and base + 2 a_row, which are address modes.
  static constexpr int kGroups = (R + 2) / 3;

  [[gnu::always_inline]] void step(const T* const* a, std::int64_t a_row, int kk, const T* b) {
    Vec<T> bv[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) bv[v] = load(b + v * kLanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec<T> av = splat(a[r / 3][(r % 3) * a_row + kk]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc[r][v] = fma(av, bv[v], acc[r][v]);
    }
  }

  [[gnu::always_inline]] void finish(const TileOut<T>& out) const {
    const bool scale = out.alpha != T{1};
    const Vec<T> alpha = splat(out.alpha);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      T* c = out.c + r * out.c_row;
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        Vec<T> x = acc[r][v];
        if (scale) x = x * alpha;
        if (out.row_bias != nullptr) x = x + splat(out.row_bias[r]);
        if (out.col_bias != nullptr) x = x + load(out.col_bias + v * kLanes<T>);
        if (out.accumulate) x = x + load(c + v * kLanes<T>);
        store(c + v * kLanes<T>, x);
      }
    }
  }
};

template <typename T, int R, int V>
void tile_product(std::int64_t k, const T* a, std::int64_t a_row, const T* b, std::int64_t b_row,
                  const TileOut<T>& out) {
  using TileType = Tile<T, R, V>;
  TileType tile;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) tile.acc[r][v] = Vec<T>{};
  }
  const T* rows[TileType::kGroups];
#pragma GCC unroll 8
  for (int g = 0; g < TileType::kGroups; ++g) rows[g] = a + 3 * g * a_row;
  std::int64_t kk = 0;
  for (; kk + 4 <= k; kk += 4) {
    tile.step(rows, a_row, 0, b);
    tile.step(rows, a_row, 1, b + b_row);
    tile.step(rows, a_row, 2, b + 2 * b_row);
    tile.step(rows, a_row, 3, b + 3 * b_row);
    b += 4 * b_row;
#pragma GCC unroll 8
    for (int g = 0; g < TileType::kGroups; ++g) rows[g] += 4;
  }
  for (; kk < k; ++kk) {
    tile.step(rows, a_row, 0, b);
    b += b_row;
#pragma GCC unroll 8
    for (int g = 0; g < TileType::kGroups; ++g) rows[g] += 1;
  }
  tile.finish(out);
}

}  // namespace wb::kernels::WB_ISA
