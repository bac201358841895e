// What a Reshape does, piece by piece: runs of dimensions that become runs of dimensions.
#pragma once

#include <vector>

#include "engine/passes/draft.h"

namespace wb::engine {

struct Segment {
  int in_begin = 0, in_end = 0, out_begin = 0, out_end = 0;

  [[nodiscard]] bool single() const { return in_end - in_begin == 1 && out_end - out_begin == 1; }
};

// The shortest pieces that hold for all sizes: a dynamic dimension is a piece of its own. False when there are none
// such, or a piece has no dimension on one side.
[[nodiscard]] bool segments_of(const Value& in, const Node& reshape, const Value& out, std::vector<Segment>* segments);

}  // namespace wb::engine
