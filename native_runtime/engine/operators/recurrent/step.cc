#include "engine/operators/recurrent/step.h"

#include "engine/operators/recurrent/beside.h"

namespace wb::engine::WB_ISA::recurrent {
namespace {

using TileFunction = void (*)(const Step& step, std::int64_t row, std::int64_t group, const float* weights,
                              std::int64_t stride);

template <typename Cell, int Rows, int Groups>
void run_tile(const Step& step, std::int64_t row, std::int64_t group, const float* weights, std::int64_t stride) {
  StepTile<Cell, Rows, Groups> tile;
  tile.run(step, row, group, weights, stride);
}

// The tile for as many rows as there are, at most rows_for().
template <typename Cell, int Groups>
TileFunction tile_for(std::int64_t rows) {
  constexpr int kMost = rows_for<Cell>(Groups);
  if constexpr (kMost >= 4) {
    if (rows >= 4) return run_tile<Cell, 4, Groups>;
  }
  if constexpr (kMost >= 3) {
    if (rows >= 3) return run_tile<Cell, 3, Groups>;
  }
  if constexpr (kMost >= 2) {
    if (rows >= 2) return run_tile<Cell, 2, Groups>;
  }
  return run_tile<Cell, 1, Groups>;
}

template <typename Cell, int Groups>
void run_groups(const Step& step, std::int64_t group, const float* weights, std::int64_t stride) {
  constexpr std::int64_t kMost = std::min(rows_for<Cell>(Groups), 4);
  for (std::int64_t row = 0; row < step.batch; row += kMost) {
    tile_for<Cell, Groups>(step.batch - row)(step, row, group, weights, stride);
  }
}

template <typename Cell>
void run_beside(const Step& step, std::int64_t group, const float* weights, std::int64_t stride,
                const dense::Tile& other) {
  StepTile<Cell, 1, 2> tile;
  tile.template run_beside<Beside::kRows>(step, group, weights, stride, other);
}

// Two groups at once where that leaves registers for the rows: their weights are one stream.
template <typename Cell>
void run_step(const Step& step, Beside* beside, std::int64_t ready) {
  constexpr std::int64_t kGroupColumns = std::int64_t{Cell::kGates} * kWidth;
  const std::int64_t groups = step.weights->groups();
  const bool pairs = step.batch == 1 || rows_for<Cell>(2) > 1;
  for (std::int64_t i = 0; i < groups; i += 2) {
    const std::int64_t group = step.backwards ? (groups - 1) / 2 * 2 - i : i;
    const float* const weights = step.weights->recurrent + group * kGroupColumns * step.weights->hidden;
    if (group + 1 == groups) {
      run_groups<Cell, 1>(step, group, weights, kGroupColumns);
      continue;
    }
    const dense::Tile* const other = beside == nullptr ? nullptr : beside->take(ready);
    if (other != nullptr) {
      run_beside<Cell>(step, group, weights, 2 * kGroupColumns, *other);
    } else if (pairs) {
      run_groups<Cell, 2>(step, group, weights, 2 * kGroupColumns);
    } else {
      run_groups<Cell, 1>(step, group, weights, 2 * kGroupColumns);
      run_groups<Cell, 1>(step, group + 1, weights + kGroupColumns, 2 * kGroupColumns);
    }
  }
}

}  // namespace

void run_lstm_step(const Step& step, Beside* beside, std::int64_t ready) { run_step<LstmCell>(step, beside, ready); }
void run_gru_step(const Step& step, Beside* beside, std::int64_t ready) { run_step<GruCell>(step, beside, ready); }

}  // namespace wb::engine::WB_ISA::recurrent
