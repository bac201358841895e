// Names of operators and functions, for events of the trace, dumps and diagnostics.
#pragma once

#include <cstddef>

#include "engine/graph.h"

namespace wb::engine {

[[nodiscard]] const char* name_of(Op op);
[[nodiscard]] const char* name_of(Fn fn);

// "[2, 3, 4]", cut where the buffer ends.
struct ShapeText {
  explicit ShapeText(const Shape& shape);
  char text[128];
};

}  // namespace wb::engine
