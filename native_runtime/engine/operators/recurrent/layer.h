// One layer and direction over a stretch of time.
#pragma once

#include "engine/operators/recurrent/step.h"

namespace wb::engine::WB_ISA::recurrent {

// Where element (step, row of the batch) of a sequence stands.
struct Sequence {
  float* data = nullptr;
  std::int64_t step_stride = 0, row_stride = 0;

  [[nodiscard]] float* at(std::int64_t step, std::int64_t row) const {
    return data + step * step_stride + row * row_stride;
  }
};

struct Layer {
  const Weights* weights = nullptr;
  bool is_lstm = true, reverse = false;
  std::int64_t steps = 0, batch = 0;
  Sequence input, output;
  float* hidden = nullptr;  // [batch, hidden] before the first step that advance() takes
  float* cell = nullptr;    // rows padded to whole vectors; updated in place
  std::int64_t cell_stride = 0;

  // The i-th step that is taken.
  [[nodiscard]] std::int64_t time(std::int64_t i) const { return reverse ? steps - 1 - i : i; }
};

// For the steps [first, first + count) in the order of the direction: the products of their inputs, to `gates`, which
// has room for count batch weights->columns() floats; and the steps themselves. `beside`, if not null, is computed
// meanwhile; then first is 0.
void multiply_inputs(const Layer& layer, std::int64_t first, std::int64_t count, float* gates);
void take_steps(const Layer& layer, std::int64_t first, std::int64_t count, const float* gates, Beside* beside);

}  // namespace wb::engine::WB_ISA::recurrent
