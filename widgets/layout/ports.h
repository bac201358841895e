// Where lines leave and enter the boxes.
#pragma once

#include <vector>

#include "graph.h"
#include "lanes.h"

namespace wb::layout {

struct Ports {
  std::vector<double> exit;      // [vertices]: x at the bottom of a producer; of other vertices: their centre line
  std::vector<double> link_end;  // [links]: x at the lower end
  std::vector<double> lane_end;  // [edges]: x at the target of an edge in a lane
};

// Exits are at the centre, or wherever a single line down becomes straight. Entries keep the order and, as far as the
// box's width and their distance allow, the x of where they come from.
[[nodiscard]] Ports choose_ports(const Layered& g, const std::vector<double>& x, const Lanes& lanes);

}  // namespace wb::layout
