// Vertical lanes at the sides: back edges, and edges too long for dummies.
//
// Shorter lanes are placed first; each takes the side that makes its horizontal parts shorter, just outside of
// everything in the rows that it passes (a skyline kept in a segment tree: O(log rows) a lane). All edges of one
// producer that go the same way share a lane.
#pragma once

#include <limits>
#include <vector>

#include "graph.h"

namespace wb::layout {

struct Lane {
  int32_t net;                   // vertex that produces
  bool upward;                   // back edges
  int32_t first = 0, last = -1;  // rows that it passes
  double x = 0;
};

struct Lanes {
  std::vector<Lane> all;
  std::vector<int32_t> of;  // of each edge, -1: none
};

// `x`: centre lines of the vertices. No lane goes to the left of `wall`.
[[nodiscard]] Lanes choose_lanes(const Layered& g, const std::vector<double>& x, double gap_x,
                                 double wall = -std::numeric_limits<double>::infinity());

}  // namespace wb::layout
