// Weights of one layer and direction of an LSTM or GRU, packed.
//
// Units stand in groups of a vector's width, gates within groups: column (group gates + gate) width + unit. So the
// gates of a unit lie in vectors side by side, and the cell is computed while they are in registers.
#pragma once

#include "engine/operator.h"
#include "kernels/simd.h"

namespace wb::engine::WB_ISA::recurrent {

namespace simd = ::wb::kernels::WB_ISA;
inline constexpr int kWidth = simd::kLanes<float>;

struct Weights {
  int gates = 0;
  std::int64_t inputs = 0, hidden = 0;
  // Panels of two vectors, as the product of the inputs reads them: [(column / (2 width))][inputs][2 width].
  const float* input = nullptr;
  // Two groups side by side: [group / 2][hidden][2 gates width]; of an odd last group [hidden][gates width].
  const float* recurrent = nullptr;
  // What is added to the gates of the inputs, and (GRU) to the recurrent product of the new gate.
  const float* bias = nullptr;
  const float* recurrent_bias = nullptr;

  [[nodiscard]] std::int64_t groups() const { return (hidden + kWidth - 1) / kWidth; }
  [[nodiscard]] std::int64_t columns() const { return groups() * gates * kWidth; }
};

// Packs weight_ih, weight_hh, bias_ih and bias_hh; `hidden`, `gates` and `inputs` of `weights` are set.
Error pack(Setup& setup, const TensorView* four, Weights* weights);

}  // namespace wb::engine::WB_ISA::recurrent
