#include "engine/operators/matmul/tile.h"

#include <array>
#include <utility>

namespace wb::engine::WB_ISA::dense {
namespace {

template <int V, std::size_t... R>
constexpr std::array<TileFunction, sizeof...(R)> tile_functions(std::index_sequence<R...> /*rows*/) {
  return {tile_product<static_cast<int>(R) + 1, V>...};
}

constexpr auto kWide = tile_functions<kTileVectors>(std::make_index_sequence<kTileRows>());
constexpr auto kNarrow = tile_functions<1>(std::make_index_sequence<kNarrowRows>());

}  // namespace

TileFunction tile_function(int rows, int vectors) {
  const auto index = static_cast<std::size_t>(rows - 1);
  return vectors == 1 ? kNarrow[index] : kWide[index];
}

}  // namespace wb::engine::WB_ISA::dense
