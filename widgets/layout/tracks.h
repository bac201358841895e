// Horizontal tracks between two rows, as in channel routing.
//
// In each gap a net has at most one horizontal segment, from its ends above to its ends below. Which of two segments
// goes above the other follows from counting the crossings both ways, and from vertical parts that would fall together
// (Sander 2004, "Layout of directed hypergraphs with orthogonal hyperedges"); cycles of these wishes are broken
// greedily (Eades, Lin, Smyth 1993). Segments that overlap never share a track. Gaps with more than some hundred
// segments fall back to the left-edge rule (Hashimoto, Stevens 1971), which only keeps them apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wb::layout {

struct Segment {
  std::vector<double> above, below;  // x of its vertical parts, sorted
  double low = 0, high = 0;          // from leftmost to rightmost
};

// Track of each segment from 0 (uppermost), and their number.
struct Tracks {
  std::vector<int32_t> of;
  int32_t count = 0;
};

[[nodiscard]] Tracks assign_tracks(std::span<const Segment> segments);

}  // namespace wb::layout
