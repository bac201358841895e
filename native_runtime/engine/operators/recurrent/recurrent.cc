// LSTM and GRU: the products of the inputs of many steps as one, then step by step the recurrent product and the cell.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <new>

#include "engine/operators/recurrent/beside.h"
#include "engine/operators/recurrent/layer.h"
#include "engine/operators/recurrent/plan.h"

namespace wb::engine::WB_ISA {
namespace recurrent {
namespace {

template <bool IsLstm>
Error prepare(PrepareContext& context) {
  void* memory = context.setup.allocate(sizeof(Plan));
  if (memory == nullptr) return Error::MemoryAllocationFailed;
  Plan* plan = new (memory) Plan;
  context.state = plan;
  return make_plan(context, IsLstm, plan);
}

Error shape(ShapeContext& context) { return size_plan(context, static_cast<Plan*>(context.state)); }

class Run {
 public:
  explicit Run(const RunContext& context)
      : context_(context),
        plan_(*static_cast<const Plan*>(context.state)),
        scratch_(reinterpret_cast<float*>(context.scratch)) {}

  void run() {
    start_states();
    switch (plan_.steps == 0 || plan_.batch == 0 ? Sharing::Alone : plan_.sharing) {
      case Sharing::Alone: run_rows(0, plan_.batch, 0); break;
      case Sharing::Batch:
        context_.pool.parallel(plan_.parts, [&](std::int64_t part, int thread) {
          run_rows(plan_.batch * part / plan_.parts, plan_.batch * (part + 1) / plan_.parts, thread);
        });
        break;
      case Sharing::Directions:
        for (std::int64_t layer = 0; layer < plan_.layers; ++layer) {
          context_.pool.parallel(2, [&](std::int64_t direction, int /*thread*/) {
            run_layer(layer, direction, 0, plan_.batch, gates(direction));
          });
        }
        break;
      case Sharing::Layers:
        context_.pool.parallel(plan_.layers, [&](std::int64_t layer, int /*thread*/) { follow(layer); });
        break;
    }
    finish_cells();
  }

 private:
  [[nodiscard]] const TensorView& input(int i) const { return context_.operands.inputs[i]; }
  [[nodiscard]] const TensorView& output(int i) const { return context_.operands.outputs[i]; }
  [[nodiscard]] float* gates(std::int64_t slot) const { return scratch_ + slot * plan_.slot_floats; }
  [[nodiscard]] float* cells(std::int64_t state) const {
    return scratch_ + plan_.cells_at + state * plan_.batch * plan_.padded_hidden();
  }
  // The hidden states are kept where the last ones are asked for.
  [[nodiscard]] float* hidden(std::int64_t state) const {
    float* const base = output(1).present ? output(1).as<float>() : scratch_ + plan_.hidden_at;
    return base + state * plan_.batch * plan_.hidden;
  }
  [[nodiscard]] std::atomic_ref<std::int64_t> progress(std::int64_t layer) const {
    return std::atomic_ref<std::int64_t>(
        *reinterpret_cast<std::int64_t*>(scratch_ + plan_.progress_at + layer * kProgressFloats));
  }

  void start_states() {
    const std::int64_t states = plan_.layers * plan_.directions;
    const auto bytes = static_cast<std::size_t>(plan_.batch * plan_.hidden) * sizeof(float);
    for (std::int64_t s = 0; s < states && bytes != 0; ++s) {
      if (input(1).present) {
        std::memcpy(hidden(s), input(1).as<float>() + s * plan_.batch * plan_.hidden, bytes);
      } else {
        std::memset(hidden(s), 0, bytes);
      }
      if (!plan_.is_lstm) continue;
      for (std::int64_t n = 0; n < plan_.batch; ++n) {
        float* const cell = cells(s) + n * plan_.padded_hidden();
        std::fill_n(cell, plan_.padded_hidden(), 0.0F);
        if (!input(2).present) continue;
        std::memcpy(cell, input(2).as<float>() + (s * plan_.batch + n) * plan_.hidden,
                    static_cast<std::size_t>(plan_.hidden) * sizeof(float));
      }
    }
    for (std::int64_t layer = 0; layer < plan_.layers; ++layer) progress(layer).store(0, std::memory_order_relaxed);
  }

  void finish_cells() {
    if (!plan_.is_lstm || !output(2).present) return;
    for (std::int64_t row = 0; row < plan_.layers * plan_.directions * plan_.batch; ++row) {
      std::memcpy(output(2).as<float>() + row * plan_.hidden, cells(0) + row * plan_.padded_hidden(),
                  static_cast<std::size_t>(plan_.hidden) * sizeof(float));
    }
  }

  // What a layer writes: the last one the output, those below it in turn a sequence of their own and the output.
  [[nodiscard]] Sequence sequence_of(std::int64_t layer) const {
    const std::int64_t width = plan_.directions * plan_.hidden;
    float* const own = scratch_ + plan_.sequences_at;
    float* const last = output(0).present
                            ? output(0).as<float>()
                            : own + (plan_.layers > 1 ? (plan_.sequence_floats() + 15) / 16 * 16 : std::int64_t{0});
    return sequence((plan_.layers - 1 - layer) % 2 == 0 ? last : own, width);
  }
  [[nodiscard]] Sequence sequence(float* data, std::int64_t width) const {
    if (plan_.batch_first) return {data, width, plan_.steps * width};
    return {data, plan_.batch * width, width};
  }

  [[nodiscard]] Layer make_layer(std::int64_t layer, std::int64_t direction, std::int64_t row,
                                 std::int64_t rows) const {
    const std::int64_t state = layer * plan_.directions + direction;
    Layer result;
    result.weights = plan_.weights + state;
    result.is_lstm = plan_.is_lstm;
    result.reverse = direction == 1;
    result.steps = plan_.steps;
    result.batch = rows;
    result.input = layer == 0 ? sequence(input(0).as<float>(), plan_.inputs) : sequence_of(layer - 1);
    result.output = sequence_of(layer);
    result.output.data += direction * plan_.hidden;
    result.input.data = result.input.at(0, row);
    result.output.data = result.output.at(0, row);
    result.hidden = hidden(state) + row * plan_.hidden;
    result.cell = cells(state) + row * plan_.padded_hidden();
    result.cell_stride = plan_.padded_hidden();
    return result;
  }

  void run_chunk(const Layer& layer, std::int64_t first, float* gates) const {
    const std::int64_t count = std::min(plan_.chunk, plan_.steps - first);
    multiply_inputs(layer, first, count, gates);
    take_steps(layer, first, count, gates, nullptr);
    keep_hidden(layer, layer.time(first + count - 1));
  }

  void keep_hidden(const Layer& layer, std::int64_t last) const {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      std::memcpy(layer.hidden + n * plan_.hidden, layer.output.at(last, n),
                  static_cast<std::size_t>(plan_.hidden) * sizeof(float));
    }
  }

  void run_layer(std::int64_t layer, std::int64_t direction, std::int64_t row, std::int64_t rows, float* gates) const {
    const Layer one = make_layer(layer, direction, row, rows);
    for (std::int64_t first = 0; first < plan_.steps; first += plan_.chunk) run_chunk(one, first, gates);
  }

  void run_rows(std::int64_t begin, std::int64_t end, int thread) const {
    if (begin == end) return;
    if (plan_.sharing == Sharing::Alone && plan_.chunk >= plan_.steps && plan_.layers > 1 &&
        Beside::fits(make_layer(0, 0, begin, end - begin), plan_.weights[1])) {
      return run_overlapped();
    }
    for (std::int64_t layer = 0; layer < plan_.layers; ++layer) {
      for (std::int64_t direction = 0; direction < plan_.directions; ++direction) {
        run_layer(layer, direction, begin, end - begin, gates(thread));
      }
    }
  }

  // Layers one after the other, each with the product of the next one's inputs beside its steps.
  void run_overlapped() const {
    Layer layer = make_layer(0, 0, 0, 1);
    multiply_inputs(layer, 0, plan_.steps, gates(0));
    for (std::int64_t i = 0; i + 1 < plan_.layers; ++i) {
      Beside beside(layer, plan_.weights[i + 1], gates((i + 1) % 2));
      take_steps(layer, 0, plan_.steps, gates(i % 2), &beside);
      beside.finish();
      keep_hidden(layer, plan_.steps - 1);
      layer = make_layer(i + 1, 0, 0, 1);
    }
    take_steps(layer, 0, plan_.steps, gates((plan_.layers - 1) % 2), nullptr);
    keep_hidden(layer, plan_.steps - 1);
  }

  // Each chunk when the layer below has done it. The pool hands indices out in order, so that the layer below is
  // either done or with another thread: waiting ends.
  void follow(std::int64_t layer) const {
    const Layer one = make_layer(layer, 0, 0, plan_.batch);
    for (std::int64_t first = 0; first < plan_.steps; first += plan_.chunk) {
      const std::int64_t end = std::min(first + plan_.chunk, plan_.steps);
      for (int looks = 0; layer > 0 && progress(layer - 1).load(std::memory_order_acquire) < end; ++looks) {
        if (looks > 10000) ::sched_yield();
      }
      run_chunk(one, first, gates(layer));
      progress(layer).store(end, std::memory_order_release);
    }
  }

  const RunContext& context_;
  const Plan& plan_;
  float* scratch_;
};

void run(const RunContext& context) { Run(context).run(); }

}  // namespace
}  // namespace recurrent
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(recurrent_recurrent, {Op::Lstm, recurrent::prepare<true>, recurrent::shape, recurrent::run},
                    {Op::Gru, recurrent::prepare<false>, recurrent::shape, recurrent::run})
