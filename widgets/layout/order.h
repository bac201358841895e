// The order in each row: barycentre sweeps, down and up in turn (Sugiyama 1981, phase 2), the best order kept.
//
// Crossings are counted with a binary indexed tree (Barth, Juenger, Mutzel 2002). Small graphs also exchange
// neighbours after each sweep where that takes crossings away (Gansner et al. 1993, "transpose"). Connected pieces
// stand side by side and never mix.
#pragma once

#include "graph.h"

namespace wb::layout {

void order_rows(Layered& g, int32_t sweeps);

// Pairs of links that cross.
[[nodiscard]] int64_t count_crossings(const Layered& g);

}  // namespace wb::layout
