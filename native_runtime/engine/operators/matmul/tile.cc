#include "engine/operators/matmul/tile.h"

#include <array>
#include <utility>

namespace wb::engine::WB_ISA::dense {
namespace {

template <int V, typename Last, std::size_t... R>
constexpr std::array<TileFunction, sizeof...(R)> tile_functions(std::index_sequence<R...> /*rows*/) {
  return {tile_product<static_cast<int>(R) + 1, V, Last>...};
}

constexpr auto kWide = tile_functions<2, WholeLast>(std::make_index_sequence<kTileRows>());
constexpr auto kNarrow = tile_functions<1, WholeLast>(std::make_index_sequence<kNarrowRows>());
constexpr auto kWideHalf = tile_functions<2, HalfLast>(std::make_index_sequence<kTileRows>());
constexpr auto kNarrowHalf = tile_functions<1, HalfLast>(std::make_index_sequence<kNarrowRows>());

}  // namespace

TileFunction tile_function(int rows, int vectors) { return tile_function_of(rows, vectors * kWidth); }

TileFunction tile_function_of(int rows, int columns) {
  const auto index = static_cast<std::size_t>(rows - 1);
  const bool half = columns % kWidth != 0;
  if (columns > kWidth) return half ? kWideHalf[index] : kWide[index];
  return half ? kNarrowHalf[index] : kNarrow[index];
}

}  // namespace wb::engine::WB_ISA::dense
