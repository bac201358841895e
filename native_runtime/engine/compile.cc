#include "engine/compile.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/describe.h"
#include "engine/infer/infer.h"
#include "engine/names.h"
#include "engine/passes/draft.h"
#include "engine/verify.h"

namespace wb::engine {

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

namespace {

// Checks the result as if it had come from a file: an error in a pass is an error that is told, not a crash.
Error rewrite(const Reporter& report, Program& program, const Options& options) {
  Draft draft(report, program.graph, program.owned);
  WB_TRY(run_passes(draft, options.fuse));
  Error error = verify(report, program.graph);
  if (error == Error::Ok) error = infer_bounds(report, program.graph);
  if (error != Error::Ok) return report.fail(Error::Internal, "after the passes");
  program.taps = std::move(draft.taps);
  program.memory = find_views(program.graph, options.fuse);
  return Error::Ok;
}

Error build(BackendInitContext& context, Program& program, const Options& options) {
  const Reporter report{context.host};
  WB_TRY(verify(report, program.graph));
  WB_TRY(infer_bounds(report, program.graph));
  WB_TRY(rewrite(report, program, options));
  ProgramSetup setup(context.host, &program, options.trial || is_set("LOWERING_WORKBENCH_TRIAL"), context.named_data);
  return make_steps(context, program, setup);
}

Error infer_node(const Reporter& report, Graph& graph, const Node& node) {
  std::vector<const Shape*> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(id == kNoValue ? nullptr : &graph.values[id].shape);
  for (const ValueId id : node.post_inputs) inputs.push_back(&graph.values[id].shape);
  Shape outputs[3];
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) outputs[i] = graph.values[node.outputs[i]].shape;
  }
  WB_TRY(infer({report, node, inputs, {outputs, node.outputs.size()}}));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    Value& value = graph.values[node.outputs[i]];
    bool fits = value.shape.rank == outputs[i].rank;
    for (int d = 0; fits && d < outputs[i].rank; ++d) {
      const bool dynamic = (value.dynamic >> d & 1U) != 0;
      fits = dynamic ? outputs[i].sizes[d] <= value.shape.sizes[d] : outputs[i].sizes[d] == value.shape.sizes[d];
    }
    if (!fits) {
      return report.fail(Error::InvalidProgram, "output %zu: expected sizes %s, found %s", i,
                         ShapeText(outputs[i]).text, ShapeText(value.shape).text);
    }
    value.shape = outputs[i];
  }
  return Error::Ok;
}

}  // namespace

Error infer_bounds(const Reporter& report, Graph& graph) {
  for (const Node& node : graph.nodes) {
    const Error error = infer_node(report, graph, node);
    if (error == Error::Ok) continue;
    return report.fail(error, "in node %zu (%s)", static_cast<std::size_t>(&node - graph.nodes.data()),
                       name_of(node.op));
  }
  return Error::Ok;
}

Result<Program*> compile(BackendInitContext& context, Graph&& graph, const Options& options) {
  void* memory = context.allocate(sizeof(Program), alignof(Program));
  if (memory == nullptr) return context.fail(Error::MemoryAllocationFailed, "no memory for a program");
  auto* program = new (memory) Program(Pool::instance().threads());
  program->graph = std::move(graph);
  const Error error = build(context, *program, options);
  if (error == Error::Ok) {
    // The environment variable LOWERING_WORKBENCH_DESCRIBE=1 shows what became of each delegate.
    if (is_set("LOWERING_WORKBENCH_DESCRIBE")) std::fputs(describe(*program).c_str(), stderr);
    return program;
  }
  destroy(program);
  return error;
}

void destroy(Program* program) {
  if (program != nullptr) program->~Program();
}

Footprint footprint_of(const Program& program) { return program.footprint; }

}  // namespace wb::engine
