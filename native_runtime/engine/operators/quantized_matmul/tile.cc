#include "engine/operators/quantized_matmul/tile.h"

#include <array>
#include <utility>

#include "engine/operators/quantized_matmul/steps.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

template <int R, int V>
[[gnu::always_inline]] inline void start(const Tile& tile, Ints (&sums)[R][V]) {
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const Ints first = load(tile.start + v * kFloats);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][v] = first;
  }
  if (tile.offsets != nullptr) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Ints column = load(tile.sums + v * kFloats);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r][v] += column * tile.offsets[r];
    }
  }
  if (tile.adds != nullptr) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] += tile.adds[r];
    }
  }
}

template <int R, int V, bool Nibbles>
void tile_product(const Tile& tile) {
  Ints sums[R][V];
  start(tile, sums);
  const DotLeft* a = tile.a;
  const std::int8_t* b = tile.b;
  const kernels::WB_ISA::DotBytes zero = tile.nibble_zero - kernels::WB_ISA::DotBytes{};
  constexpr int kSteps = Nibbles ? 2 : 1;
  for (std::int64_t left = tile.steps; left > 0; left -= kSteps) {
    step<R, V, Nibbles>(sums, a, tile.lda, b, zero);
    a += kSteps * kDotDepth;
    b += tile.ldb;
  }
  Floats scale[V];
  Floats bias[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    scale[v] = load(tile.scale + v * kFloats);
    bias[v] = load(tile.bias + v * kFloats);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    Floats numbers[V];
    if (tile.row_scales != nullptr) {
      const Floats row = splat(tile.row_scales[r]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) numbers[v] = fma(floats_of(sums[r][v]) * scale[v], row, bias[v]);
    } else {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) numbers[v] = fma(floats_of(sums[r][v]), scale[v], bias[v]);
    }
    store_row(tile, r, numbers);
  }
}

template <int R, int V, bool Nibbles>
void group_tile_product(const Tile& tile) {
  Floats numbers[R][V] = {};
  const DotLeft* a = tile.a;
  const std::int8_t* b = tile.b;
  const float* scale = tile.scale;
  const kernels::WB_ISA::DotBytes zero = tile.nibble_zero - kernels::WB_ISA::DotBytes{};
  constexpr int kSteps = Nibbles ? 2 : 1;
  for (std::int64_t left = tile.steps; left > 0;) {
    Ints sums[R][V] = {};
    std::int64_t inside = std::min(left, tile.group_steps);
    left -= inside;
    for (; inside > 0; inside -= kSteps) {
      step<R, V, Nibbles>(sums, a, tile.lda, b, zero);
      a += kSteps * kDotDepth;
      b += tile.ldb;
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Floats of_group = load(scale + v * kFloats);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) numbers[r][v] = fma(floats_of(sums[r][v]), of_group, numbers[r][v]);
    }
    scale += tile.columns;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const Floats offset = splat(static_cast<float>(tile.offsets[r]));
    const Floats row = splat(tile.row_scales[r]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Floats whole = fma(offset, load(tile.weight_sums + v * kFloats), numbers[r][v]);
      numbers[r][v] = fma(whole, row, load(tile.bias + v * kFloats));
    }
    store_row(tile, r, numbers[r]);
  }
}

template <int V, bool Nibbles, std::size_t... R>
constexpr std::array<TileFunction, sizeof...(R)> functions(std::index_sequence<R...> /*rows*/) {
  return {tile_product<static_cast<int>(R) + 1, V, Nibbles>...};
}
template <int V, bool Nibbles, std::size_t... R>
constexpr std::array<TileFunction, sizeof...(R)> group_functions(std::index_sequence<R...> /*rows*/) {
  return {group_tile_product<static_cast<int>(R) + 1, V, Nibbles>...};
}

using Rows = std::make_index_sequence<kTileRows>;
template <bool Nibbles, std::size_t... V>
constexpr std::array<std::array<TileFunction, kTileRows>, sizeof...(V)> table(std::index_sequence<V...> /*vectors*/) {
  return {functions<static_cast<int>(V) + 1, Nibbles>(Rows{})...};
}
template <bool Nibbles, std::size_t... V>
constexpr std::array<std::array<TileFunction, kTileRows>, sizeof...(V)> group_table(std::index_sequence<V...> /*v*/) {
  return {group_functions<static_cast<int>(V) + 1, Nibbles>(Rows{})...};
}

constexpr auto kBytes = table<false>(std::make_index_sequence<kPanelVectors>());
constexpr auto kNibbles = table<true>(std::make_index_sequence<kPanelVectors>());
constexpr auto kGroupBytes = group_table<false>(std::make_index_sequence<kGroupVectors>());
constexpr auto kGroupNibbles = group_table<true>(std::make_index_sequence<kGroupVectors>());

}  // namespace

TileFunction tile_function(int rows, int vectors, bool nibbles) {
  const auto v = static_cast<std::size_t>(vectors - 1);
  const auto r = static_cast<std::size_t>(rows - 1);
  return nibbles ? kNibbles[v][r] : kBytes[v][r];
}

TileFunction group_tile_function(int rows, int vectors, bool nibbles) {
  const auto v = static_cast<std::size_t>(vectors - 1);
  const auto r = static_cast<std::size_t>(rows - 1);
  return nibbles ? kGroupNibbles[v][r] : kGroupBytes[v][r];
}

void store_numbers(const Store& how, const float* numbers, int width, void* to) {
  Floats vectors[kPanelVectors];
  for (int v = 0; v < kPanelVectors; ++v) vectors[v] = load(numbers + v * kFloats);
  Tile tile;
  tile.store = how;
  tile.c = to;
  tile.width = width;
  store_row(tile, 0, vectors);
}

}  // namespace wb::engine::WB_ISA::quantized
