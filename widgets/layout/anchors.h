// Boxes that stood somewhere before stay there, to the last bit: what order.h and place.h do, for a changed graph.
//
// The rows of before are found again from the tops of the anchored boxes (a row's boxes share their top). A box moves
// down to the next row of before only if its producer is no longer above it, and a row moves down only if the one above
// it grew into it. In a row, anchored boxes give way only to each other, as little as possible in the least squares
// (isotonic regression, pool adjacent violators: Barlow et al. 1972); new boxes take the nearest hole, and lines the
// nearest free column. Nothing goes to the left of the margin, as that would shift everything.
#pragma once

#include <vector>

#include "graph.h"
#include "layout.h"
#include "route.h"

namespace wb::layout {

// Least distance between two rows, px, where one is pushed.
[[nodiscard]] double closest_rows(const Options& options);

[[nodiscard]] bool has_anchors(const Input& input);

struct AnchoredRows {
  std::vector<int32_t> of;  // row of each box
  std::vector<bool> home;   // of each box: this is the row in which it stood before
  std::vector<double> top;  // of each row, NaN: between those beside it
};

[[nodiscard]] AnchoredRows assign_anchored_rows(const Input& input);

[[nodiscard]] Places place_anchored(const Layered& g, const Input& input, const AnchoredRows& rows);

}  // namespace wb::layout
