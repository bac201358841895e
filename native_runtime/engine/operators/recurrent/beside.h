// The product of the next layer's inputs, computed beside the steps of the layer that makes them: a step of a batch of
// one waits for its weights to come from the second-level cache, and has multipliers to spare.
#pragma once

#include "engine/operators/matmul/tile.h"
#include "engine/operators/recurrent/layer.h"

namespace wb::engine::WB_ISA::recurrent {

class Beside {
 public:
  // Rows of a tile: with the sums of the step they fill the registers of 32-register machines.
  static constexpr int kRows = 6;

  // Is the next layer's product such that it can be computed beside the steps of `layer`?
  [[nodiscard]] static bool fits(const Layer& layer, const Weights& next) {
    return simd::kVectorRegisters == 32 && layer.batch == 1 && !layer.reverse && next.inputs == layer.weights->hidden &&
           layer.output.step_stride == next.inputs && next.groups() * next.gates % 2 == 0;
  }

  Beside(const Layer& layer, const Weights& next, float* gates) : steps_(layer.steps), next_(next) {
    tile_.k = next.inputs;
    tile_.a = layer.output.data;
    tile_.lda = layer.output.step_stride;
    tile_.ldb = dense::kPanel;
    tile_.ldc = next.columns();
    tile_.c = gates;
  }

  // The next tile whose rows stand (the first `ready` do), or null.
  [[nodiscard]] const dense::Tile* take(std::int64_t ready) {
    if (row_ + kRows > ready) return nullptr;
    tile_.b = next_.input + column_ * next_.inputs;
    tile_.bias = next_.bias + column_;
    current_ = tile_;
    current_.a += row_ * tile_.lda;
    current_.c += row_ * tile_.ldc + column_;
    column_ += dense::kPanel;
    if (column_ == next_.columns()) {
      column_ = 0;
      row_ += kRows;
    }
    return &current_;
  }

  // What is left once all steps are done.
  void finish();

 private:
  std::int64_t steps_;
  const Weights& next_;
  dense::Tile tile_, current_;
  std::int64_t row_ = 0, column_ = 0;
};

}  // namespace wb::engine::WB_ISA::recurrent
