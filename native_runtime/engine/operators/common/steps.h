// One step of a pointwise program on a rectangle of floats: the code that epilogues and Pointwise nodes share.
#pragma once

#include <cstdint>

#include "engine/graph.h"

namespace wb::engine::WB_ISA {

// A rectangle in memory: where its first element stands, and how many elements further its next row begins. 0: all
// rows are the same.
struct Place {
  const float* data = nullptr;
  std::int64_t row = 0;
};

// out = fn(in...) for rows x cols elements. `out` may be one of the operands. Truth values are 0 and 1.
struct StepArguments {
  float* out;
  std::int64_t out_row;
  Place in[3];
  std::int64_t rows, cols;
  float a, b;
};
using StepFunction = void (*)(const StepArguments&);

// Every Fn has one.
[[nodiscard]] StepFunction step_function(Fn fn);
[[nodiscard]] StepFunction unary_step(Fn fn);
[[nodiscard]] StepFunction binary_step(Fn fn);

}  // namespace wb::engine::WB_ISA
