#include "engine/names.h"
#include "engine/program.h"
#include "engine/taps.h"

namespace wb::engine {
namespace {

// One argument of a call, and the value that it stands for.
struct Argument {
  const BackendExecuteContext& context;
  Program& program;
  External& external;
  std::uint32_t index;  // among all arguments, for messages
  const EValue& value;

  [[nodiscard]] const Value& bound() const { return program.graph.values[external.value]; }
  [[nodiscard]] Shape& shape() const { return program.shapes[external.value]; }

  Error check() const {
    if (!value.is_tensor()) {
      return context.fail(Error::InvalidType, "argument %u: expected Tensor, found %s", index, wb::name_of(value.tag));
    }
    const Tensor& tensor = value.tensor();
    if (tensor.dtype == bound().dtype && tensor.rank == bound().shape.rank) return Error::Ok;
    return context.fail(Error::InvalidArgument, "argument %u: expected %s of rank %u, found %s of rank %u", index,
                        wb::name_of(bound().dtype), bound().shape.rank, wb::name_of(tensor.dtype), tensor.rank);
  }

  // Takes the sizes of an input, in the order in which they stand in memory.
  Error take_sizes(bool* changed) const {
    const Tensor& tensor = value.tensor();
    Shape& present = shape();
    for (int d = 0; d < tensor.rank; ++d) {
      const std::int64_t size = tensor.sizes[tensor.dim_order[d]];
      if (size == present.sizes[d]) continue;
      const bool dynamic = (bound().dynamic >> d & 1U) != 0;
      if (size < 0 || size > bound().shape.sizes[d] || (!dynamic && size != bound().shape.sizes[d])) {
        return context.fail(Error::InvalidArgument, "argument %u: dimension %u: expected %s %lld, found %lld", index,
                            tensor.dim_order[d], dynamic ? "a size of at most" : "size",
                            static_cast<long long>(bound().shape.sizes[d]), static_cast<long long>(size));
      }
      present.sizes[d] = size;
      *changed = true;
    }
    return Error::Ok;
  }

  Error give_sizes() const {
    Tensor& tensor = value.tensor();
    std::int32_t sizes[kMaxRank];
    bool same = true;
    for (int d = 0; d < tensor.rank; ++d) {
      const int to = tensor.dim_order[d];
      sizes[to] = static_cast<std::int32_t>(shape().sizes[d]);
      same = same && shape().sizes[d] == tensor.sizes[to];
    }
    if (same) return Error::Ok;
    if (context.resize(tensor, {sizes, tensor.rank}) == Error::Ok) return Error::Ok;
    return context.fail(Error::InvalidArgument, "argument %u can't have the sizes of the result", index);
  }

  Error take_memory() const {
    void* data = value.tensor().data;
    if (data == nullptr && shape().numel() != 0) {
      return context.fail(Error::InvalidArgument, "argument %u has no memory", index);
    }
    if (data != external.data) program.bind(external, data);
    return Error::Ok;
  }
};

Error bind_arguments(BackendExecuteContext& context, Program& program, std::span<EValue* const> args) {
  const std::size_t inputs = program.inputs.size();
  if (args.size() != inputs + program.outputs.size()) {
    return context.fail(Error::InvalidArgument, "expected %zu inputs and %zu outputs, found %zu arguments", inputs,
                        program.outputs.size(), args.size());
  }
  const auto argument = [&](std::size_t i) {
    External& external = i < inputs ? program.inputs[i] : program.outputs[i - inputs];
    return Argument{context, program, external, static_cast<std::uint32_t>(i), *args[i]};
  };
  bool changed = !program.sized;
  for (std::size_t i = 0; i < inputs; ++i) {
    WB_TRY(argument(i).check());
    const Error error = argument(i).take_sizes(&changed);
    if (changed) program.sized = false;  // also when a later argument fails
    WB_TRY(error);
  }
  if (changed) WB_TRY(program.resize(context.host));
  for (std::size_t i = inputs; i < args.size(); ++i) {
    WB_TRY(argument(i).check());
    WB_TRY(argument(i).give_sizes());
  }
  for (std::size_t i = 0; i < args.size(); ++i) WB_TRY(argument(i).take_memory());
  return Error::Ok;
}

void run_step(Program& program, const Step& step, RunFault* fault) {
  const Node& node = program.graph.nodes[step.node];
  step.op->run({.node = node,
                .operands = program.operands(step),
                .state = step.state,
                .scratch = program.arena + step.scratch_offset,
                .pool = program.pool(),
                .post_count = static_cast<std::uint32_t>(node.post.size()),
                .fault = fault});
}

void run_traced(BackendExecuteContext& context, Program& program, RunFault* fault) {
  TapReader taps(context, program);
  taps.before_all();
  for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    taps.before(s);
    const std::uint64_t start = now_ns();
    if (!step.empty) run_step(program, step, fault);
    context.log(step.name.c_str(), step.id.c_str(), start, now_ns());
    taps.after(s);
  }
}

Error report_fault(const BackendExecuteContext& context, const Program& program, const RunFault& fault) {
  for (const Step& step : program.steps) {
    if (&program.graph.nodes[step.node] != fault.node) continue;
    return context.fail(Error::InvalidArgument, "node %s (%s): index %lld is out of range, there are %lld",
                        step.id.c_str(), step.name.c_str(), static_cast<long long>(fault.found),
                        static_cast<long long>(fault.limit));
  }
  return Error::InvalidArgument;
}

}  // namespace

void Program::bind(External& external, void* data) {
  external.data = data;
  for (const std::uint32_t view : external.views) {
    views[view].data = static_cast<std::byte*>(data) + placements[view_values[view]].offset;
  }
}

Error execute(BackendExecuteContext& context, Program& program, std::span<EValue* const> args) {
  WB_TRY(bind_arguments(context, program, args));
  RunFault fault;
  if (context.trace != nullptr) {
    run_traced(context, program, &fault);
  } else {
    for (const Step& step : program.steps) {
      if (!step.empty) run_step(program, step, &fault);
    }
  }
  return fault.raised.load() ? report_fault(context, program, fault) : Error::Ok;
}

}  // namespace wb::engine
