// softmax(q k^T scale + mask) v without the matrix of scores: tiles of some queries run over blocks of keys, and what
// they sum up is put right whenever a larger score turns up (online softmax, rows.h). Scores of a tile stay in the
// first- level cache, a block of keys and values in the second.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>
#include <utility>

#include "engine/operators/attention/geometry.h"
#include "engine/operators/attention/mask.h"
#include "engine/operators/attention/pack.h"
#include "engine/operators/attention/rows.h"
#include "engine/operators/matmul/tile.h"

namespace wb::engine::WB_ISA {
namespace attention {
namespace {

using dense::kPanel;
using dense::kTileRows;
using dense::Tile;
using dense::tile_function;
using dense::TileFunction;

constexpr std::int64_t kMaxKeys = 512;        // of a block
constexpr std::int64_t kLongKeys = 256;       // of a block of several
constexpr std::int64_t kBlockFloats = 32768;  // of a block's keys or values, about
constexpr std::int64_t kMaxQueries = 252;     // that share the packing of a block
constexpr std::int64_t kMinQueries = 48;
constexpr double kSmallWork = 1e6;  // multiplications: not worth a second thread

constexpr std::int64_t round_up(std::int64_t x, std::int64_t to) { return (x + to - 1) / to * to; }

// Sizes of the scratch memory of one thread, in floats. They follow from the upper bounds.
struct Plan {
  std::int64_t block_keys = 0, chunk_queries = 0;
  std::int64_t value_width = 0, score_stride = 0;
  std::int64_t values_at = 0, scores_at = 0, mask_at = 0, states_at = 0, floats = 0;
};

struct State {
  Geometry geometry;
  Plan plan;
  std::int64_t chunk = 0, chunks = 0;  // queries of a task, tasks of a head
  bool threaded = false;
};

Plan plan_for(const Geometry& bounds) {
  Plan plan;
  const std::int64_t wider = std::max<std::int64_t>({bounds.key_size, bounds.value_size, 1});
  const std::int64_t limit = bounds.keys <= kMaxKeys ? kMaxKeys : kLongKeys;
  plan.block_keys = std::min(limit, std::max<std::int64_t>(64, round_up(kBlockFloats / wider, kPanel)));
  plan.block_keys = round_up(std::min(plan.block_keys, std::max<std::int64_t>(bounds.keys, 1)), kPanel);
  plan.chunk_queries = std::min(kMaxQueries, std::max<std::int64_t>(bounds.queries, 1));
  plan.value_width = round_up(bounds.value_size, kWidth);
  plan.score_stride = plan.block_keys + kWidth;  // rows in different sets of the cache
  plan.values_at = round_up(plan.block_keys * bounds.key_size, 16);
  plan.scores_at = plan.values_at + round_up(plan.block_keys * plan.value_width, 16);
  plan.mask_at = plan.scores_at + round_up(kTileRows * plan.score_stride, 16);
  plan.states_at = plan.mask_at + round_up(plan.block_keys, 16);
  plan.floats = plan.states_at + round_up(plan.chunk_queries * 2, 16);
  return plan;
}

Error prepare(PrepareContext& context) {
  if (context.operands.input_count < 3 || context.operands.output_count != 1) {
    return context.setup.fail(Error::InvalidProgram,
                              "attention: %u inputs and %u outputs; a query, a key, a value and one output are needed",
                              context.operands.input_count, context.operands.output_count);
  }
  void* memory = context.setup.allocate(sizeof(State));
  if (memory == nullptr) return Error::MemoryAllocationFailed;
  State* state = new (memory) State;
  context.state = state;
  WB_TRY(read_geometry(context.setup, context.node, context.operands, &state->geometry));
  state->plan = plan_for(state->geometry);
  return Error::Ok;
}

// Tasks: some queries of a head each. Enough for the threads to share evenly; as few as possible, for each packs keys.
Error shape(ShapeContext& context) {
  State& state = *static_cast<State*>(context.state);
  WB_TRY(read_geometry(context.setup, context.node, context.operands, &state.geometry));
  const Geometry& g = state.geometry;
  const std::int64_t heads = g.batch * g.heads;
  const double work = static_cast<double>(heads) * static_cast<double>(g.queries) * static_cast<double>(g.keys) *
                      static_cast<double>(g.key_size + g.value_size);
  state.threaded = context.threads > 1 && work > kSmallWork;
  const std::int64_t most = std::max<std::int64_t>(state.plan.chunk_queries, 1);
  std::int64_t chunks = (g.queries + most - 1) / most;
  while (state.threaded && heads * chunks < 3 * context.threads && g.queries / (chunks + 1) >= kMinQueries) ++chunks;
  chunks = std::max<std::int64_t>(chunks, 1);
  state.chunk = std::min(most, round_up((g.queries + chunks - 1) / chunks, kTileRows));
  state.chunk = std::max<std::int64_t>(state.chunk, 1);
  state.chunks = (g.queries + state.chunk - 1) / state.chunk;
  const std::size_t threads = state.threaded ? static_cast<std::size_t>(context.threads) : 1;
  context.scratch = static_cast<std::size_t>(state.plan.floats) * sizeof(float) * threads;
  return Error::Ok;
}

// One head's queries [first, first + count), by one thread.
class Task {
 public:
  Task(const RunContext& context, const State& state, std::int64_t head, std::int64_t first, int thread)
      : g_(state.geometry),
        plan_(state.plan),
        first_(first),
        count_(std::min(state.chunk, state.geometry.queries - first)),
        causal_(context.node.attributes.causal) {
    const std::int64_t lead = head / g_.heads;
    head %= g_.heads;
    const TensorView* inputs = context.operands.inputs;
    query_ = inputs[0].as<const float>() + offset_of(g_, g_.q, lead, head);
    keys_ = inputs[1].as<const float>() + offset_of(g_, g_.k, lead, head);
    values_ = inputs[2].as<const float>() + offset_of(g_, g_.v, lead, head);
    out_ = context.operands.outputs[0].as<float>() + offset_of(g_, g_.out, lead, head);
    if (g_.mask.present) {
      mask_ = inputs[3].data;
      mask_offset_ = mask_offset_of(g_, lead, head);
    }
    factor_ = static_cast<float>(context.node.attributes.scale * 1.4426950408889634);
    scratch_ = reinterpret_cast<float*>(context.scratch) + thread * plan_.floats;
    states_ = reinterpret_cast<RowState*>(scratch_ + plan_.states_at);
  }

  void run() {
    for (std::int64_t i = 0; i < count_; ++i) states_[i] = RowState{};
    const std::int64_t visible = causal_ ? std::min(g_.keys, first_ + count_) : g_.keys;
    if (visible == 0) return clear();
    for (std::int64_t key = 0; key < visible; key += plan_.block_keys) {
      run_block(key, std::min(plan_.block_keys, visible - key));
    }
  }

 private:
  void clear() {
    for (std::int64_t i = first_; i < first_ + count_; ++i) {
      std::fill_n(out_ + i * g_.out.row_stride, g_.value_size, 0.0F);
    }
  }

  void run_block(std::int64_t key, std::int64_t keys) {
    pack_keys(keys_ + key * g_.k.row_stride, g_.k.row_stride, keys, g_.key_size, factor_, scratch_);
    pack_values(values_ + key * g_.v.row_stride, g_.v.row_stride, keys, g_.value_size, plan_.value_width,
                scratch_ + plan_.values_at);
    MaskBlock mask(g_.mask, mask_, mask_offset_, key, keys, scratch_ + plan_.mask_at);
    const std::int64_t tiles = (count_ + kTileRows - 1) / kTileRows;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t row = count_ * tile / tiles;
      run_tile(key, keys, row, static_cast<int>(count_ * (tile + 1) / tiles - row), mask);
    }
  }

  // Queries first + row ... over a block of keys.
  void run_tile(std::int64_t key, std::int64_t keys, std::int64_t row, int rows, MaskBlock& mask) {
    const std::int64_t query = first_ + row;
    const std::int64_t end = causal_ ? std::min(g_.keys, query + rows) : g_.keys;  // keys that the tile sees
    const std::int64_t seen = std::min(keys, end - key);
    if (seen <= 0) return;
    float* const scores = scratch_ + plan_.scores_at;
    multiply_keys(query, rows, seen, scores);
    float* const out = out_ + query * g_.out.row_stride;
    for (int r = 0; r < rows; ++r) {
      float* const line = scores + r * plan_.score_stride;
      if (g_.mask.present) mask.add(query + r, line);
      const std::int64_t valid = causal_ ? std::clamp<std::int64_t>(query + r + 1 - key, 0, seen) : seen;
      const float rescale = soften_row(line, valid, seen, &states_[row + r]);
      if (key != 0 && rescale != 1.0F) scale_row(out + r * g_.out.row_stride, g_.value_size, rescale);
    }
    multiply_values(rows, seen, key != 0, scores, out);
    if (key + keys < end) return;
    for (int r = 0; r < rows; ++r) {
      scale_row(out + r * g_.out.row_stride, g_.value_size, inverse_sum(states_[row + r]));
    }
  }

  void multiply_keys(std::int64_t query, int rows, std::int64_t keys, float* scores) const {
    Tile tile;
    tile.k = g_.key_size;
    tile.a = query_ + query * g_.q.row_stride;
    tile.lda = g_.q.row_stride;
    tile.b = scratch_;
    tile.ldb = kPanel;
    tile.c = scores;
    tile.ldc = plan_.score_stride;
    const TileFunction wide = tile_function(rows, 2);
    for (std::int64_t j = 0; j < keys; j += kPanel) {
      (keys - j > kWidth ? wide : tile_function(rows, 1))(tile);
      tile.b += g_.key_size * kPanel;
      tile.c += kPanel;
    }
  }

  void multiply_values(int rows, std::int64_t keys, bool accumulate, const float* scores, float* out) const {
    Tile tile;
    tile.k = keys;
    tile.a = scores;
    tile.lda = plan_.score_stride;
    tile.ldb = plan_.value_width;
    tile.ldc = g_.out.row_stride;
    tile.accumulate = accumulate;
    for (std::int64_t j = 0; j < g_.value_size; j += kPanel) {
      const std::int64_t left = g_.value_size - j;
      tile.b = scratch_ + plan_.values_at + j;
      tile.c = out + j;
      const int vectors = left > kWidth ? 2 : 1;
      tile.tail = static_cast<int>(std::min<std::int64_t>(kWidth, left - (vectors - 1) * kWidth));
      tile_function(rows, vectors)(tile);
    }
  }

  const Geometry& g_;
  const Plan& plan_;
  std::int64_t first_, count_;
  bool causal_;
  const float* query_ = nullptr;
  const float* keys_ = nullptr;
  const float* values_ = nullptr;
  float* out_ = nullptr;
  const void* mask_ = nullptr;
  std::int64_t mask_offset_ = 0;
  float factor_ = 1;
  float* scratch_ = nullptr;
  RowState* states_ = nullptr;
};

void run(const RunContext& context) {
  const State& state = *static_cast<const State*>(context.state);
  const std::int64_t tasks = state.geometry.batch * state.geometry.heads * state.chunks;
  auto task = [&](std::int64_t index, int thread) {
    Task(context, state, index / state.chunks, index % state.chunks * state.chunk, thread).run();
  };
  if (state.threaded) {
    context.pool.parallel(tasks, std::move(task));
  } else {
    for (std::int64_t i = 0; i < tasks; ++i) task(i, 0);
  }
}

}  // namespace
}  // namespace attention
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(attention_attention, {Op::Attention, attention::prepare, attention::shape, attention::run})
