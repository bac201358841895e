#include "engine/operators/recurrent/layer.h"

#include "engine/operators/recurrent/beside.h"

namespace wb::engine::WB_ISA::recurrent {
namespace {

// gates[row] = input[row] weights + bias, for rows `stride` apart.
void multiply_rows(const Weights& weights, const float* input, std::int64_t stride, std::int64_t rows, float* gates,
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

// How the gates of a stretch of time stand: like the input where its rows of one batch element are neighbours.
struct GateOrder {
  bool by_row = false;
  std::int64_t begin = 0;  // earliest time
  std::int64_t step = 0, row = 0;
};

GateOrder order_of(const Layer& layer, std::int64_t first, std::int64_t count) {
  const std::int64_t columns = layer.weights->columns();
  GateOrder order;
  order.by_row = layer.input.step_stride < layer.input.row_stride;
  order.begin = std::min(layer.time(first), layer.time(first + count - 1));
  order.step = order.by_row ? columns : columns * layer.batch;
  order.row = order.by_row ? columns * count : columns;
  return order;
}

}  // namespace

void multiply_inputs(const Layer& layer, std::int64_t first, std::int64_t count, float* gates) {
  const GateOrder order = order_of(layer, first, count);
  const std::int64_t columns = layer.weights->columns();
  if (order.by_row) {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      multiply_rows(*layer.weights, layer.input.at(order.begin, n), layer.input.step_stride, count,
                    gates + n * order.row, columns);
    }
  } else if (layer.input.step_stride == layer.batch * layer.input.row_stride) {
    multiply_rows(*layer.weights, layer.input.at(order.begin, 0), layer.input.row_stride, count * layer.batch, gates,
                  columns);
  } else {  // part of a batch
    for (std::int64_t t = 0; t < count; ++t) {
      multiply_rows(*layer.weights, layer.input.at(order.begin + t, 0), layer.input.row_stride, layer.batch,
                    gates + t * order.step, columns);
    }
  }
}

void take_steps(const Layer& layer, std::int64_t first, std::int64_t count, const float* gates, Beside* beside) {
  const GateOrder order = order_of(layer, first, count);
  Step step;
  step.weights = layer.weights;
  step.batch = layer.batch;
  step.gates_stride = order.row;
  step.after_stride = layer.output.row_stride;
  step.cell = layer.cell;
  step.cell_stride = layer.cell_stride;
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::int64_t t = layer.time(i);
    step.gates = gates + (t - order.begin) * order.step;
    step.before = i == first ? layer.hidden : layer.output.at(layer.time(i - 1), 0);
    step.before_stride = i == first ? layer.weights->hidden : layer.output.row_stride;
    step.after = layer.output.at(t, 0);
    step.backwards = i % 2 != 0;
    if (layer.is_lstm) {
      run_lstm_step(step, beside, i);
    } else {
      run_gru_step(step, beside, i);
    }
  }
}

void Beside::finish() {
  while (const dense::Tile* tile = take(steps_)) dense::tile_function(kRows, dense::kTileVectors)(*tile);
  if (row_ == steps_) return;
  multiply_rows(next_, tile_.a + row_ * tile_.lda, tile_.lda, steps_ - row_, tile_.c + row_ * tile_.ldc, tile_.ldc);
}

}  // namespace wb::engine::WB_ISA::recurrent
