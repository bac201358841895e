// A graph as text, one node a line, for tests and for people who look for a fault.
#pragma once

#include <string>

#include "engine/graph.h"

namespace wb::engine {

// "input 0: %0 float32 [1, 3, 8, 8]", "%4 = convolution(%1, %2, %3) 3x3 stride 2x2 [1, 4, 4, 8] @12", ...; "<=" stands
// before a size that may be smaller, @ before the sources.
[[nodiscard]] std::string dump(const Graph& graph);

}  // namespace wb::engine
