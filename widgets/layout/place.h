// The x of every vertex, in a given order.
//
// Vertices that should stand exactly below one another are joined into columns first (one link each, never crossing
// another such link), as in Brandes, Koepf 2001 ("Fast and simple horizontal coordinate assignment"), but once and by
// rank of the links: dummies of a line, then the main chain of boxes, then the ends of lines. Columns are pushed as far
// left and as far right as they go; each begins halfway, which keeps every distance, and then moves towards its
// neighbours as far as the columns beside it let it, a fixed number of times.
#pragma once

#include <vector>

#include "graph.h"

namespace wb::layout {

// [vertices], centre lines, px from an arbitrary origin, in steps of a quarter pixel.
[[nodiscard]] std::vector<double> place(const Layered& g, double gap_x);

}  // namespace wb::layout
