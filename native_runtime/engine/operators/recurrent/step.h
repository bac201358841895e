// One time step of a layer: the recurrent product, which streams the packed weights once for some rows of the batch,
// and the cell while its gates are in registers.
#pragma once

#include <algorithm>

#include "engine/operators/recurrent/cell.h"
#include "engine/operators/recurrent/weights.h"

namespace wb::engine::WB_ISA::recurrent {

// Row n of the batch stands n strides further.
struct Step {
  const Weights* weights = nullptr;
  std::int64_t batch = 0;
  const float* gates = nullptr;  // of the inputs, with the biases
  std::int64_t gates_stride = 0;
  const float* before = nullptr;  // hidden state
  std::int64_t before_stride = 0;
  float* after = nullptr;
  std::int64_t after_stride = 0;
  float* cell = nullptr;  // padded to whole vectors; updated in place
  std::int64_t cell_stride = 0;
};

template <typename Cell, int Rows, int Groups>
struct StepTile {
  static constexpr std::int64_t kGroupColumns = std::int64_t{Cell::kGates} * kWidth;
  Floats sums[Rows][Groups][Cell::kSums];

  [[gnu::always_inline]] void add(const float* const* rows, std::int64_t k, const float* weights) {
    Floats h[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) h[r] = splat(rows[r][k]);
#pragma GCC unroll 2
    for (int u = 0; u < Groups; ++u) {
#pragma GCC unroll 4
      for (int g = 0; g < Cell::kSums; ++g) {
        const Floats w = load(weights + (u * Cell::kGates + g) * kWidth);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) sums[r][u][g] = fma(h[r], w, sums[r][u][g]);
      }
    }
  }

  // Groups [group, group + Groups) of rows [row, row + Rows); `weights` is where the first group's stand, `stride` the
  // distance of their rows.
  [[gnu::always_inline]] void run(const Step& step, std::int64_t row, std::int64_t group, const float* weights,
                                  std::int64_t stride) {
    const std::int64_t hidden = step.weights->hidden;
    const float* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      rows[r] = step.before + (row + r) * step.before_stride;
#pragma GCC unroll 2
      for (int u = 0; u < Groups; ++u) {
        Cell::start(step.gates + (row + r) * step.gates_stride + (group + u) * kGroupColumns,
                    step.weights->recurrent_bias + (group + u) * kWidth, sums[r][u]);
      }
    }
    std::int64_t k = 0;
    for (; k + 4 <= hidden; k += 4) {
      add(rows, k, weights);
      add(rows, k + 1, weights + stride);
      add(rows, k + 2, weights + 2 * stride);
      add(rows, k + 3, weights + 3 * stride);
      weights += 4 * stride;
    }
    for (; k < hidden; ++k, weights += stride) add(rows, k, weights);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int u = 0; u < Groups; ++u) finish(step, row + r, group + u, sums[r][u]);
    }
  }

  [[gnu::always_inline]] static void finish(const Step& step, std::int64_t row, std::int64_t group,
                                            const Floats* sums) {
    const std::int64_t unit = group * kWidth;
    const int units = static_cast<int>(std::min<std::int64_t>(kWidth, step.weights->hidden - unit));
    const float* const before = step.before + row * step.before_stride + unit;
    float* const after = step.after + row * step.after_stride + unit;
    float* const cell_at = step.cell + row * step.cell_stride + unit;
    Floats cell{};
    if constexpr (Cell::kHasCell) cell = load(cell_at);
    Floats hidden{};
    if constexpr (!Cell::kHasCell) hidden = units == kWidth ? load(before) : load_first(before, units);
    const Floats next = Cell::finish(sums, step.gates + row * step.gates_stride + group * kGroupColumns, hidden, &cell);
    if constexpr (Cell::kHasCell) store(cell_at, cell);
    if (units == kWidth) {
      store(after, next);
    } else {
      store_first(after, next, units);
    }
  }
};

// Rows that fit into the registers: their sums, their hidden states, and a vector of weights.
template <typename Cell>
constexpr int rows_for(int groups) {
  return (simd::kVectorRegisters - 1) / (Cell::kSums * groups + 1);
}

void run_lstm_step(const Step& step);
void run_gru_step(const Step& step);

}  // namespace wb::engine::WB_ISA::recurrent
