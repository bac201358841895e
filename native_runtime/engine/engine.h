// The engine: compiles a Graph once and runs it often. Backends own programs; nothing here knows a blob.
//
//   WB_ASSIGN(Program * program, compile(context, std::move(graph), options));
//   execute(context, *program, inputs, outputs)
#pragma once

#include <cstdint>
#include <span>

#include "core/backend.h"
#include "engine/graph.h"

namespace wb::engine {

struct Options {
  bool fuse = true;
  // Measure the methods that may suit a layer while loading, instead of asking the cost model. The environment variable
  // LOWERING_WORKBENCH_TRIAL=1 says so for all programs.
  bool trial = false;
};

class Program;  // allocated by the host of the context it was compiled with

// Checks the graph (trusting nothing in it), rewrites it, chooses a method for every node, packs constant weights and
// plans memory. Reports and returns InvalidProgram for a graph that breaks the rules of graph.h, NotSupported for what
// no operator here computes. Constants that no value keeps may be released afterwards.
[[nodiscard]] Result<Program*> compile(BackendInitContext& context, Graph&& graph, const Options& options);

// Runs it. `args` are the inputs, then the outputs; outputs are resized to what the inputs' sizes imply.
Error execute(BackendExecuteContext& context, Program& program, std::span<EValue* const> args);

void destroy(Program* program);

// Bytes of packed weights, of the arena and of scratch memory, for reports.
struct Footprint {
  std::size_t packed = 0, arena = 0, scratch = 0;
};
[[nodiscard]] Footprint footprint_of(const Program& program);

}  // namespace wb::engine
