// One time step of a layer: the recurrent product, which streams the packed weights once for some rows of the batch,
// and the cell while its gates are in registers.
#pragma once

#include <algorithm>

#include "engine/operators/matmul/tile.h"
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
  // From the last weight to the first: what the step before read last is still in the first-level cache.
  bool backwards = false;
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

  // Groups [group, group + Groups) of rows [row, row + Rows).
  [[gnu::always_inline]] void start(const Step& step, std::int64_t row, std::int64_t group, const float** rows) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      rows[r] = step.before + (row + r) * step.before_stride + (step.backwards ? step.weights->hidden - 1 : 0);
#pragma GCC unroll 2
      for (int u = 0; u < Groups; ++u) {
        Cell::start(step.gates + (row + r) * step.gates_stride + (group + u) * kGroupColumns,
                    step.weights->recurrent_bias + (group + u) * kWidth, sums[r][u]);
      }
    }
  }

  // `weights` is where the first group's stand, `stride` the distance of their rows.
  [[gnu::always_inline]] void run(const Step& step, std::int64_t row, std::int64_t group, const float* weights,
                                  std::int64_t stride) {
    const std::int64_t hidden = step.weights->hidden;
    const float* rows[Rows];
    start(step, row, group, rows);
    const std::int64_t ahead = step.backwards ? -1 : 1;
    if (step.backwards) weights += (hidden - 1) * stride;
    stride *= ahead;
    std::int64_t left = hidden;
    for (; left >= 4; left -= 4) {
      add(rows, 0, weights);
      add(rows, ahead, weights + stride);
      add(rows, 2 * ahead, weights + 2 * stride);
      add(rows, 3 * ahead, weights + 3 * stride);
      weights += 4 * stride;
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) rows[r] += 4 * ahead;
    }
    for (std::int64_t k = 0; k < left; ++k, weights += stride) add(rows, k * ahead, weights);
    finish_all(step, row, group);
  }

  // The same, with a tile of another product of the same depth.
  template <int OtherRows>
  [[gnu::always_inline]] void run_beside(const Step& step, std::int64_t group, const float* weights,
                                         std::int64_t stride, const dense::Tile& other) {
    const std::int64_t hidden = step.weights->hidden;
    const float* rows[Rows];
    start(step, 0, group, rows);
    dense::Accumulators<OtherRows, dense::kTileVectors> sums_of_other;
    sums_of_other.start(other);
    constexpr int kPointers = (OtherRows + 2) / 3;
    const float* others[kPointers];
#pragma GCC unroll 4
    for (int p = 0; p < kPointers; ++p) others[p] = other.a + 3 * p * other.lda;
    const float* b = other.b;
    const std::int64_t ahead = step.backwards ? -1 : 1;
    if (step.backwards) weights += (hidden - 1) * stride;
    stride *= ahead;
    for (std::int64_t k = 0; k < hidden; ++k) {
      add(rows, k * ahead, weights);
      sums_of_other.step(others, other.lda, 0, b);
      weights += stride;
      b += other.ldb;
#pragma GCC unroll 4
      for (int p = 0; p < kPointers; ++p) others[p] += 1;
    }
    sums_of_other.finish(other);
    finish_all(step, 0, group);
  }

  [[gnu::always_inline]] void finish_all(const Step& step, std::int64_t row, std::int64_t group) {
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

class Beside;
// `beside`, if not null, gets time of its own where the step waits; `ready` of its rows stand.
void run_lstm_step(const Step& step, Beside* beside, std::int64_t ready);
void run_gru_step(const Step& step, Beside* beside, std::int64_t ready);

}  // namespace wb::engine::WB_ISA::recurrent
