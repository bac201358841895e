// Edges as orthogonal polylines: leave at the bottom of a box, run on a track below a row, pass rows in a free column,
// enter at the top of a box. No edge passes through a box.
//
// An edge enters as straight below where it comes from as the box's width allows; edges of one producer leave from one
// point. Gaps between rows grow with their tracks, up to a limit, beyond which the tracks stand closer.
#pragma once

#include <vector>

#include "graph.h"
#include "layout.h"

namespace wb::layout {

struct Places {
  std::vector<double> x;                    // centre lines of the vertices, px
  std::vector<double> y;                    // tops of the boxes; empty: rows are stacked here
  std::vector<double> row_top, row_bottom;  // with `y`
  double wall = 0;                          // with `y`: nothing goes to the left of it
};

// Writes all of the output.
void route(const Layered& g, Places& places, const Options& options, Output& output);

}  // namespace wb::layout
