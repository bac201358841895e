// Pointwise nodes: programs of steps over broadcast operands, in one pass over memory. Operands that a step can't read
// where they stand (a column, another type, the few elements of a short row) are spread into a buffer first.
#include <algorithm>
#include <iterator>
#include <new>

#include "engine/names.h"
#include "engine/operators/common/work.h"
#include "engine/operators/pointwise/integers.h"
#include "engine/operators/pointwise/layout.h"
#include "engine/operators/pointwise/quantized.h"
#include "kernels/common/convert.h"

namespace wb::engine::WB_ISA {
namespace {

using kernels::WB_ISA::find_load;
using kernels::WB_ISA::find_store;
using kernels::WB_ISA::Lane;
using kernels::WB_ISA::LoadFunction;
using kernels::WB_ISA::StoreFunction;

// Columns from which on a row is worth a loop of its own.
constexpr std::int64_t kShortRow = 128;
constexpr std::int64_t kPlainBlock = 8192;  // of a program without buffers

struct State {
  PointwiseLayout layout;
  QuantizedMethod quantized;  // of the whole program, in the place of all that follows
  bool integers = false;
  LoadFunction load[StepProgram::kMaxInputs] = {};  // null: floats
  StoreFunction store = nullptr;                    // null: floats
  std::int64_t buffers = 0;                         // that a thread needs, of a block each
  std::int64_t limit = 0;                           // elements of a block
  int cost = 1;                                     // of an element
};

// What a step asks of an input: where it stands, or a buffer.
enum class Access : std::uint8_t { Unused, Direct, Filled, FilledOnce };

Access access_of(const State& state, const StepProgram& program, int k) {
  const PointwiseLayout& layout = state.layout;
  if (!program.uses_input(k) && k != 0) return Access::Unused;
  const bool floats = state.load[k] == nullptr;
  const bool dense = layout.col_stride(k) == 1 && (layout.row_stride(k) == layout.cols() || layout.rows() == 1);
  const bool rows = layout.col_stride(k) == 1 && layout.cols() >= kShortRow;
  if (floats && (dense || rows)) return Access::Direct;
  return layout.repeats_by_row(k) ? Access::FilledOnce : Access::Filled;
}

// One thread's share: buffers, and how each input comes to the steps.
class Worker {
 public:
  Worker(const RunContext& context, const State& state, const StepProgram& program, float* memory)
      : context_(context), state_(state), program_(program), count_(static_cast<int>(context.operands.input_count)) {
    temporaries_ = memory;
    float* next = memory + program.temporaries() * state.limit;
    for (int k = 0; k < count_; ++k) {
      access_[k] = access_of(state, program, k);
      if (access_[k] != Access::Filled && access_[k] != Access::FilledOnce) continue;
      buffers_[k] = next;
      next += state.limit;
    }
    out_ = next;
    const Rectangle first(state.layout, count_, 0);
    for (int k = 0; k < count_; ++k) {
      if (access_[k] == Access::FilledOnce) fill(k, first);
    }
  }

  void run(std::int64_t index) {
    const Rectangle at(state_.layout, count_, index);
    Place places[StepProgram::kMaxInputs];
    for (int k = 0; k < count_; ++k) {
      if (access_[k] == Access::Direct) {
        const auto* data = context_.operands.inputs[k].as<const float>();
        places[k] = {data + at.inputs[k], state_.layout.row_stride(k)};
        if (state_.layout.rows() == 1) places[k].row = at.cols;
      } else if (access_[k] != Access::Unused) {
        if (access_[k] == Access::Filled) fill(k, at);
        places[k] = {buffers_[k], at.cols};
      }
    }
    const TensorView& out = context_.operands.outputs[0];
    if (out.dtype == ScalarType::Float) {  // also in the place of integers, when they are tapped
      program_.evaluate(places[0], places, out.as<float>() + at.out, state_.layout.cols(), at.rows, at.cols,
                        temporaries_);
      return;
    }
    program_.evaluate(places[0], places, out_, at.cols, at.rows, at.cols, temporaries_);
    if (out.quantization != nullptr) {
      for (std::int64_t r = 0; r < at.rows; ++r) {
        quantize_run(out, at.out + r * state_.layout.cols(), out_ + r * at.cols, at.cols);
      }
      return;
    }
    const auto size = static_cast<std::int64_t>(element_size(out.dtype));
    for (std::int64_t r = 0; r < at.rows; ++r) {
      state_.store(out.as<std::byte>() + (at.out + r * state_.layout.cols()) * size, 1, out_ + r * at.cols, at.cols);
    }
  }

 private:
  void fill(int k, const Rectangle& at) {
    const TensorView& input = context_.operands.inputs[k];
    const std::int64_t row = state_.layout.row_stride(k);
    const std::int64_t col = state_.layout.col_stride(k);
    float* to = buffers_[k];
    if (state_.load[k] == nullptr && row == 0 && col == 0) {
      std::fill_n(to, at.rows * at.cols, input.as<const float>()[at.inputs[k]]);
      return;
    }
    if (input.quantization != nullptr) return fill_quantized(input, at.inputs[k], row, col, at.rows, at.cols, to);
    const LoadFunction load = state_.load[k] != nullptr ? state_.load[k] : find_load(ScalarType::Float, Lane::F32);
    const auto size = static_cast<std::int64_t>(element_size(input.dtype));
    const std::byte* from = input.as<const std::byte>() + at.inputs[k] * size;
    if (at.cols == 1) {
      load(to, from, row, at.rows);
      return;
    }
    for (std::int64_t r = 0; r < at.rows; ++r) {
      if (r > 0 && row == 0) {
        std::copy_n(to, at.cols, to + r * at.cols);
      } else if (col == 0 && state_.load[k] == nullptr) {
        std::fill_n(to + r * at.cols, at.cols, input.as<const float>()[at.inputs[k] + r * row]);
      } else {
        load(to + r * at.cols, from + r * row * size, col, at.cols);
      }
    }
  }

  const RunContext& context_;
  const State& state_;
  const StepProgram& program_;
  int count_;
  float* temporaries_;
  float* out_;
  Access access_[StepProgram::kMaxInputs] = {};
  float* buffers_[StepProgram::kMaxInputs] = {};
};

bool is_integer(ScalarType type) { return kernels::WB_ISA::is_integral(type) || type == ScalarType::Bool; }

Error check(PrepareContext& context) {
  const Node& node = context.node;
  if (node.post.empty() || node.post.size() > StepProgram::kMaxSteps ||
      context.operands.input_count > StepProgram::kMaxInputs) {
    return context.setup.fail(
        Error::NotSupported, "a pointwise program has 1 to %d steps and at most %d inputs, found %zu and %u",
        StepProgram::kMaxSteps, StepProgram::kMaxInputs, node.post.size(), context.operands.input_count);
  }
  for (std::uint32_t k = 0; k <= context.operands.input_count; ++k) {
    const TensorView& value = k == 0 ? context.operands.outputs[0] : context.operands.inputs[k - 1];
    if (kernels::WB_ISA::is_computable(value.dtype) && value.dtype != ScalarType::Double) continue;
    return context.setup.fail(Error::NotSupported, "a pointwise program can't compute with %s", name_of(value.dtype));
  }
  return Error::Ok;
}

bool computes_integers(const Operands& operands) {
  if (operands.outputs[0].quantization != nullptr) return false;
  bool any = operands.outputs[0].dtype != ScalarType::Bool;
  for (std::uint32_t k = 0; k < operands.input_count; ++k) {
    if (!is_integer(operands.inputs[k].dtype) || operands.inputs[k].quantization != nullptr) return false;
    any |= operands.inputs[k].dtype != ScalarType::Bool;
  }
  return any && is_integer(operands.outputs[0].dtype);
}

Error pointwise_prepare(PrepareContext& context) {
  WB_TRY(check(context));
  void* memory = context.setup.allocate(sizeof(State));
  if (memory == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a pointwise program");
  auto* state = new (memory) State;
  context.state = state;
  const Node& node = context.node;
  state->integers = computes_integers(context.operands);
  if (state->integers) {
    for (const PointwiseStep& step : node.post) {
      if (integers_have(step.fn)) continue;
      return context.setup.fail(Error::NotSupported, "%s of integers gives no integer", name_of(step.fn));
    }
  } else {
    for (std::uint32_t k = 0; k < context.operands.input_count; ++k) {
      const ScalarType type = context.operands.inputs[k].dtype;
      if (type != ScalarType::Float) state->load[k] = find_load(type, Lane::F32);
    }
    const ScalarType type = context.operands.outputs[0].dtype;
    if (type != ScalarType::Float) state->store = find_store(type, Lane::F32);
  }
  for (const PointwiseStep& step : node.post) state->cost += cost_of(step.fn);
  return state->quantized.prepare(context);
}

Error pointwise_shape(ShapeContext& context) {
  State& state = *static_cast<State*>(context.state);
  const auto inputs = static_cast<int>(context.operands.input_count);
  state.layout.merge(context.operands.outputs[0].shape, context.operands.inputs, inputs);
  if (state.integers) {
    state.layout.cut(kIntegerBlock);
    return Error::Ok;
  }
  // The same for all sizes: every step may need a temporary, every input a buffer.
  const auto steps = static_cast<std::int64_t>(context.node.post.size()) - 1;
  state.buffers = steps + inputs + (state.store != nullptr ? 1 : 0);
  state.limit = StepProgram::kBlock;
  context.scratch = static_cast<std::size_t>(context.threads * state.buffers * state.limit) * sizeof(float);
  const float* scalars[StepProgram::kMaxInputs] = {};
  StepProgram program;
  program.build(context.node.post.data(), static_cast<int>(context.node.post.size()), scalars, false);
  bool buffered = steps > 0 || state.store != nullptr;
  for (int k = 0; k < inputs; ++k) {
    const Access access = access_of(state, program, k);
    buffered |= access == Access::Filled || access == Access::FilledOnce;
  }
  state.layout.cut(buffered ? state.limit : kPlainBlock);
  return Error::Ok;
}

void pointwise_run(const RunContext& context) {
  const State& state = *static_cast<const State*>(context.state);
  if (state.quantized.run(context)) return;
  if (state.layout.blocks == 0) return;
  if (state.integers) {
    run_integers(context, state.layout);
    return;
  }
  const float* scalars[StepProgram::kMaxInputs] = {};
  for (std::uint32_t k = 0; k < context.operands.input_count; ++k) {
    const TensorView& input = context.operands.inputs[k];
    if (state.load[k] == nullptr && input.shape.numel() == 1) scalars[k] = input.as<const float>();
  }
  StepProgram program;
  program.build(context.node.post.data(), static_cast<int>(context.post_count), scalars, false);
  const std::int64_t work = context.operands.outputs[0].shape.numel() * state.cost;
  split(context.pool, state.layout.blocks, work, [&](std::int64_t begin, std::int64_t end, int thread) {
    auto* memory = reinterpret_cast<float*>(context.scratch) + thread * state.buffers * state.limit;
    Worker worker(context, state, program, memory);
    for (std::int64_t i = begin; i < end; ++i) worker.run(i);
  });
}

bool pointwise_fuses(const Node& node, const PointwiseStep& /*step*/) {
  return node.post.size() < StepProgram::kMaxSteps && node.inputs.size() + 2 <= StepProgram::kMaxInputs;
}

bool pointwise_quantized(const Graph& graph, const Node& node) {
  const auto fits = [&](ValueId id) {
    const Value& value = graph.values[id];
    const bool bytes = value.dtype == ScalarType::Char || value.dtype == ScalarType::Byte;
    if (!value.quantization.present()) return value.dtype == ScalarType::Float || value.dtype == ScalarType::Bool;
    return bytes && value.quantization.bits == 8 && value.quantization.kind == Quantization::Kind::PerTensor;
  };
  return std::ranges::all_of(node.inputs, fits) && fits(node.outputs[0]);
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(pointwise_pointwise, {Op::Pointwise, pointwise_prepare, pointwise_shape, pointwise_run,
                                          pointwise_fuses, pointwise_quantized})
