// What follows from the sizes of the inputs. Runs while a graph is compiled and whenever sizes change, allocates
// nothing.
#include "engine/infer/infer.h"
#include "engine/names.h"
#include "engine/program.h"

namespace wb::engine {
namespace {

bool within(const Shape& shape, const Value& bound) {
  if (shape.rank != bound.shape.rank) return false;
  for (int d = 0; d < shape.rank; ++d) {
    const std::int64_t most = bound.shape.sizes[d];
    if (shape.sizes[d] > most || ((bound.dynamic >> d & 1U) == 0 && shape.sizes[d] != most)) return false;
  }
  return true;
}

}  // namespace

Error Program::infer_node(const Reporter& report, const Node& node) {
  const std::size_t inputs = node.inputs.size();
  const std::size_t count = inputs + node.post_inputs.size();
  for (std::size_t i = 0; i < count; ++i) {
    const ValueId id = i < inputs ? node.inputs[i] : node.post_inputs[i - inputs];
    shape_pointers_[i] = id == kNoValue ? nullptr : &shapes[id];
  }
  Shape outputs[3];
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) outputs[i] = graph.values[node.outputs[i]].shape;
  }
  WB_TRY(infer({report, node, {shape_pointers_.data(), count}, {outputs, node.outputs.size()}}));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (id == kNoValue) continue;
    if (!within(outputs[i], graph.values[id])) {
      return report.fail(Error::InvalidArgument, "output %zu would have sizes %s, planned were at most %s", i,
                         ShapeText(outputs[i]).text, ShapeText(graph.values[id].shape).text);
    }
    shapes[id] = outputs[i];
  }
  return Error::Ok;
}

Error Program::shape_step(const Host* host, Step& step) {
  step.empty = true;
  for (std::uint32_t i = 0; i < step.view_count(); ++i) {
    const ValueId id = view_values[step.first_view + i];
    if (id == kNoValue) continue;
    views[step.first_view + i].shape = shapes[id];
    const bool output = i >= step.input_count && i < step.input_count + step.output_count;
    if (output && shapes[id].numel() != 0) step.empty = false;
  }
  ProgramSetup setup(host, this, false);
  ShapeContext context{.setup = setup, .node = graph.nodes[step.node], .operands = operands(step)};
  context.state = step.state;
  context.threads = pool_.threads();
  WB_TRY(step.op->shape(context));
  if (context.scratch <= step.scratch_bytes) return Error::Ok;
  return setup.fail(Error::Internal, "%zu bytes of scratch memory, planned were %zu", context.scratch,
                    step.scratch_bytes);
}

Error Program::resize(const Host* host) {
  sized = false;
  const Reporter report{host};
  std::size_t next = 0;  // step
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    Error error = infer_node(report, graph.nodes[n]);
    if (error == Error::Ok && next < steps.size() && steps[next].node == n) error = shape_step(host, steps[next++]);
    if (error != Error::Ok) return report.fail(error, "in node %u (%s)", n, name_of(graph.nodes[n].op));
  }
  sized = true;
  return Error::Ok;
}

}  // namespace wb::engine
