// Layered layout of one container of a graph: boxes in rows, edges as orthogonal polylines between them.
//
// The phases are those of Sugiyama, Tagawa, Toda 1981 ("Methods for visual understanding of hierarchical system
// structures"), each by a method that is near linear, so that a flat graph of 10,000 boxes takes well under a second:
//   ranks.h    rows by longest path in the given topological order (no network simplex as in Gansner et al. 1993)
//   graph.h    one net for each producer; dummies for short hops, side lanes for long ones and for back edges
//   order.h    a fixed number of barycentre sweeps, and exchanges of neighbours in small graphs
//   place.h    columns of aligned vertices (after Brandes, Koepf 2001), balanced between the leftmost and rightmost
//   place anchors.h  in the place of the last two: boxes that were seen before stay where they were lanes.h, tracks.h,
//   route.h   which vertical lane, which horizontal track, the polylines
// All lengths are pixels; x grows to the right, y downwards. The same input gives the same output everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wb::layout {

struct Options {
  float gap_x = 24;       // between two boxes of a row, px
  float gap_y = 36;       // between two rows, px; more where many edges run in between
  float margin = 16;      // around everything, px
  int32_t sweeps = 8;     // barycentre sweeps
  int32_t max_span = 32;  // rows that an edge may cross between the boxes; longer ones take a side lane
};

// Boxes stand in topological order: an edge to an earlier box is a back edge and runs at the side.
struct Input {
  std::span<const float> width, height;       // [n], px
  std::span<const int32_t> src, dst;          // [m]; src = -1: enters at the top border, dst = -1: leaves at the bottom
  std::span<const int32_t> weight;            // [m], >= 0: heavier edges are kept straight first
  std::span<const float> anchor_x, anchor_y;  // [n], px, top left; NaN in either: none. Empty spans: none at all
  Options options;
};

struct Output {
  std::vector<float> x, y;          // [n], px, top left
  float width = 0, height = 0;      // of everything with the margin, px
  std::vector<int32_t> edge_start;  // [m + 1], in points
  std::vector<float> points;        // x, y, x, y, ... px
};

enum class Fault : int32_t {
  kNone = 0,
  kTooMany,
  kSizes,
  kWidth,
  kHeight,
  kSource,
  kTarget,
  kWeight,
  kAnchor,
  kGapX,
  kGapY,
  kMargin,
  kSweeps,
  kMaxSpan,
};

struct [[nodiscard]] Status {
  Fault fault = Fault::kNone;
  int32_t index = -1;  // of the box or edge at fault, -1: none
  explicit operator bool() const { return fault == Fault::kNone; }
};

// What was expected, as half a sentence ("a box's width must be ...").
[[nodiscard]] const char* describe(Fault fault);

// Checks everything before it computes anything.
[[nodiscard]] Status check(const Input& input);

Status layout(const Input& input, Output& output);

}  // namespace wb::layout
