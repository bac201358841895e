// From a graph to steps: operators, their states, views of memory.
#include <algorithm>
#include <unordered_map>

#include "engine/compile.h"
#include "engine/names.h"

namespace wb::engine {
namespace {

TensorView bound_view(const Program& program, ValueId id) {
  TensorView view;
  if (id == kNoValue) return view;
  const Graph& graph = program.graph;
  const Value& value = graph.values[id];
  view.shape = value.shape;
  view.dtype = value.dtype;
  if (value.quantization.present()) view.quantization = &value.quantization;
  view.present = true;
  const Alias at = program.memory.resolve(id);
  const Value& root = graph.values[at.root];
  view.constant = root.kind == ValueKind::Constant && value.dynamic == 0;
  if (view.constant && root.data != nullptr) {
    view.data = static_cast<std::byte*>(const_cast<void*>(root.data)) + at.offset;
  }
  return view;
}

// "convolution+add+clamp"
std::string event_name(const Node& node) {
  std::string name;
  if (node.op != Op::Pointwise) name = name_of(node.op);
  for (const PointwiseStep& step : node.post) {
    if (!name.empty()) name += '+';
    name += name_of(step.fn);
  }
  return name;
}

std::string event_id(const Node& node) {
  std::string id;
  for (std::size_t i = 0; i < node.sources.size(); ++i) {
    const auto before = node.sources.begin() + static_cast<std::ptrdiff_t>(i);
    if (node.sources[i] < 0 || std::find(node.sources.begin(), before, node.sources[i]) != before) continue;
    if (!id.empty()) id += '+';
    id += std::to_string(node.sources[i]);
  }
  return id;
}

Error make_step(const Reporter& report, Program& program, std::uint32_t index) {
  const Node& node = program.graph.nodes[index];
  Step step;
  step.op = find_operator(node.op);
  step.node = index;
  if (step.op == nullptr) return report.fail(Error::NotSupported, "the operator %s is not built in", name_of(node.op));
  if (node.op != Op::Pointwise) {
    for (const PointwiseStep& post : node.post) {
      if (step.op->fuses != nullptr && step.op->fuses(node, post)) continue;
      return report.fail(Error::NotSupported, "%s takes no %s in its epilogue", name_of(node.op), name_of(post.fn));
    }
  }
  step.first_view = static_cast<std::uint32_t>(program.views.size());
  const auto add = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      program.views.push_back(bound_view(program, id));
      program.view_values.push_back(id);
    }
    return static_cast<std::uint32_t>(ids.size());
  };
  step.input_count = add(node.inputs);
  step.output_count = add(node.outputs);
  step.post_input_count = add(node.post_inputs);
  step.name = event_name(node);
  step.id = event_id(node);
  program.steps.push_back(std::move(step));
  return Error::Ok;
}

// Gives constants back once every node that reads them has packed them.
class ConstantKeeper {
 public:
  ConstantKeeper(const BackendInitContext& context, Program& program) : context_(context), program_(program) {
    for (std::uint32_t n = 0; n < program.graph.nodes.size(); ++n) {
      if (program.memory.skipped[n]) continue;
      for_each_constant(program.graph.nodes[n], [&](const Value& value, std::size_t) { ++uses_[value.data]; });
    }
  }

  void prepared(const Node& node, std::uint64_t packed) {
    for_each_constant(node, [&](const Value& value, std::size_t input) {
      if (input >= 64 || (packed >> input & 1U) == 0) return;  // stays in use
      if (--uses_[value.data] != 0) return;
      if (context_.named_data != nullptr) {
        context_.named_data->release({static_cast<const std::byte*>(value.data), bytes_of(value)});
      }
      program_.owned.release(value.data);
    });
  }

 private:
  template <typename F>
  void for_each_constant(const Node& node, F&& f) {
    const std::size_t inputs = node.inputs.size();
    for (std::size_t i = 0; i < inputs + node.post_inputs.size(); ++i) {
      const ValueId id = i < inputs ? node.inputs[i] : node.post_inputs[i - inputs];
      if (id == kNoValue) continue;
      const Value& root = program_.graph.values[program_.memory.resolve(id).root];
      if (root.kind == ValueKind::Constant) f(root, i < inputs ? i : SIZE_MAX);
    }
  }

  const BackendInitContext& context_;
  Program& program_;
  std::unordered_map<const void*, std::size_t> uses_;
};

Error prepare(Program& program, ProgramSetup& setup, Step& step, ConstantKeeper& constants) {
  const Node& node = program.graph.nodes[step.node];
  PrepareContext context{.setup = setup, .node = node, .operands = program.operands(step)};
  context.threads = program.pool().threads();
  WB_TRY(step.op->prepare(context));
  constants.prepared(node, context.packed_inputs);
  step.state = context.state;
  ShapeContext shape{.setup = setup, .node = node, .operands = program.operands(step)};
  shape.state = step.state;
  shape.threads = context.threads;
  WB_TRY(step.op->shape(shape));
  step.scratch_bytes = shape.scratch;
  return Error::Ok;
}

void bind_views(Program& program) {
  program.inputs.resize(program.graph.inputs);
  program.outputs.resize(program.graph.outputs);
  for (ValueId id = 0; id < program.graph.values.size(); ++id) {
    const Value& value = program.graph.values[id];
    program.shapes.push_back(value.shape);
    if (value.kind == ValueKind::Input) program.inputs[value.external].value = id;
    if (value.kind == ValueKind::Output) program.outputs[value.external].value = id;
  }
  for (std::uint32_t i = 0; i < program.views.size(); ++i) {
    const ValueId id = program.view_values[i];
    if (id == kNoValue) continue;
    const Placement& placement = program.placements[id];
    switch (placement.kind) {
      case Placement::Kind::None: break;
      case Placement::Kind::Input: program.inputs[placement.external].views.push_back(i); break;
      case Placement::Kind::Output: program.outputs[placement.external].views.push_back(i); break;
      case Placement::Kind::Constant: {
        const auto* data = static_cast<const std::byte*>(program.graph.values[placement.root].data);
        program.views[i].data = const_cast<std::byte*>(data) + placement.offset;
        break;
      }
      case Placement::Kind::Arena: program.views[i].data = program.arena + placement.offset; break;
    }
  }
}

}  // namespace

Error make_steps(BackendInitContext& context, Program& program, ProgramSetup& setup) {
  const Reporter report{context.host};
  ConstantKeeper constants(context, program);
  for (std::uint32_t i = 0; i < program.graph.nodes.size(); ++i) {
    const Node& node = program.graph.nodes[i];
    program.reserve_inputs(node.inputs.size() + node.post_inputs.size());
    if (program.memory.skipped[i]) continue;
    Error error = make_step(report, program, i);
    if (error == Error::Ok) error = prepare(program, setup, program.steps.back(), constants);
    if (error != Error::Ok) {
      return report.fail(error, "in node %u (%s)", i, name_of(program.graph.nodes[i].op));
    }
  }
  WB_TRY(make_placements(report, program));
  bind_views(program);
  make_step_taps(program);
  return program.resize(context.host);
}

}  // namespace wb::engine
