// An LSTM or GRU node: its weights, its sizes, how a run is shared between threads.
#pragma once

#include "engine/operators/recurrent/weights.h"

namespace wb::engine::WB_ISA::recurrent {

enum class Sharing : std::uint8_t {
  Alone,       // one thread
  Batch,       // each thread takes rows of the batch through all layers
  Directions,  // both directions of a layer side by side
  Layers,      // each layer follows the one below it at a distance of some steps
};

struct Plan {
  bool is_lstm = true;
  std::int64_t layers = 1, directions = 1, hidden = 0, inputs = 0;
  bool batch_first = false;
  Weights* weights = nullptr;     // layers x directions
  std::int64_t most_columns = 0;  // of the gates of any of them

  std::int64_t steps = 0, batch = 0;
  Sharing sharing = Sharing::Alone;
  std::int64_t parts = 1;  // of the batch
  std::int64_t chunk = 0;  // steps whose gates are computed at once
  // Scratch memory, in floats.
  std::int64_t slot_floats = 0;  // gates of one thread
  std::int64_t cells_at = 0, hidden_at = 0, sequences_at = 0, progress_at = 0;

  [[nodiscard]] std::int64_t padded_hidden() const { return (hidden + kWidth - 1) / kWidth * kWidth; }
  [[nodiscard]] std::int64_t sequence_floats() const { return steps * batch * directions * hidden; }
  [[nodiscard]] std::int64_t input_operands() const { return is_lstm ? 3 : 2; }
};

// Rows of a progress counter: one line of the cache each.
inline constexpr std::int64_t kProgressFloats = 16;

// Checks the node and packs its weights.
Error make_plan(PrepareContext& context, bool is_lstm, Plan* plan);
// Reads the present sizes and lays out the scratch memory; returns its bytes.
Error size_plan(ShapeContext& context, Plan* plan);

}  // namespace wb::engine::WB_ISA::recurrent
