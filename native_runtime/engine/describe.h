// A compiled graph as text: for tests and for people.
#pragma once

#include <string>

#include "engine/engine.h"

namespace wb::engine {

// A line for each node in the order of execution:
//   2 convolution+clamp #4+5: v3 f32 [1, 8, 8, 4] @arena 0, c1, c2 -> v7 f32 [1, 8, 8, 16] @output 0
// then the bytes of the arena. Nodes that only name a part of memory are marked by "=".
[[nodiscard]] std::string describe(const Program& program);

}  // namespace wb::engine
