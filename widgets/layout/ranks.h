// Rows: the longest path in the given order, one pass (Sugiyama 1981, phase 1; not the network simplex of Gansner
// 1993).
//
// Boxes without a producer then move down to just above their first consumer. Isolated boxes fill a block of about as
// many rows as columns. A row of more than `row_limit(n)` boxes wraps into several, in the given order, so that a fan
// of 10,000 is a block and not a line.
#pragma once

#include <cstdint>
#include <vector>

#include "layout.h"

namespace wb::layout {

// Most boxes of one row among n: twice the side of a square, at least 32.
[[nodiscard]] int32_t row_limit(int32_t boxes);

// [n], from 0; an edge from an earlier to a later box goes to a greater row.
[[nodiscard]] std::vector<int32_t> assign_rows(const Input& input);

}  // namespace wb::layout
