#include "engine/operators/recurrent/layer.h"

#include "engine/operators/matmul/tile.h"

namespace wb::engine::WB_ISA::recurrent {
namespace {

// gates[row] = input[row] weights + bias, for rows `stride` apart.
void multiply_inputs(const Weights& weights, const float* input, std::int64_t stride, std::int64_t rows, float* gates,
                     std::int64_t gates_stride) {
  const std::int64_t vectors = weights.groups() * weights.gates;
  const std::int64_t tiles = (rows + dense::kTileRows - 1) / dense::kTileRows;
  dense::Tile tile;
  tile.k = weights.inputs;
  tile.lda = stride;
  tile.ldb = dense::kPanel;
  tile.ldc = gates_stride;
  for (std::int64_t vector = 0; vector < vectors; vector += 2) {
    const int width = vector + 1 < vectors ? 2 : 1;
    tile.b = weights.input + vector * kWidth * weights.inputs;
    tile.bias = weights.bias + vector * kWidth;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t row = rows * i / tiles;
      tile.a = input + row * stride;
      tile.c = gates + row * gates_stride + vector * kWidth;
      dense::tile_function(static_cast<int>(rows * (i + 1) / tiles - row), width)(tile);
    }
  }
}

}  // namespace

void advance(const Layer& layer, std::int64_t first, std::int64_t count, float* gates) {
  const std::int64_t columns = layer.weights->columns();
  const std::int64_t begin = std::min(layer.time(first), layer.time(first + count - 1));  // earliest time
  // Rows that stand next to each other in the input are one product.
  const bool by_row = layer.input.step_stride < layer.input.row_stride;
  const std::int64_t gates_step = by_row ? columns : columns * layer.batch;
  const std::int64_t gates_row = by_row ? columns * count : columns;
  if (by_row) {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      multiply_inputs(*layer.weights, layer.input.at(begin, n), layer.input.step_stride, count, gates + n * gates_row,
                      columns);
    }
  } else if (layer.input.step_stride == layer.batch * layer.input.row_stride) {
    multiply_inputs(*layer.weights, layer.input.at(begin, 0), layer.input.row_stride, count * layer.batch, gates,
                    columns);
  } else {  // part of a batch
    for (std::int64_t t = 0; t < count; ++t) {
      multiply_inputs(*layer.weights, layer.input.at(begin + t, 0), layer.input.row_stride, layer.batch,
                      gates + t * gates_step, columns);
    }
  }
  Step step;
  step.weights = layer.weights;
  step.batch = layer.batch;
  step.gates_stride = gates_row;
  step.after_stride = layer.output.row_stride;
  step.cell = layer.cell;
  step.cell_stride = layer.cell_stride;
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::int64_t t = layer.time(i);
    step.gates = gates + (t - begin) * gates_step;
    step.before = i == first ? layer.hidden : layer.output.at(layer.time(i - 1), 0);
    step.before_stride = i == first ? layer.weights->hidden : layer.output.row_stride;
    step.after = layer.output.at(t, 0);
    if (layer.is_lstm) {
      run_lstm_step(step);
    } else {
      run_gru_step(step);
    }
  }
}

}  // namespace wb::engine::WB_ISA::recurrent
