// Where each value stands: in the caller's memory, where the file has it, or in the arena.
#include <algorithm>

#include "engine/compile.h"
#include "engine/plan.h"

namespace wb::engine {
namespace {

Placement fixed_placement(const Value& value) {
  switch (value.kind) {
    case ValueKind::Input: return {.kind = Placement::Kind::Input, .external = value.external};
    case ValueKind::Output: return {.kind = Placement::Kind::Output, .external = value.external};
    case ValueKind::Constant: return {.kind = Placement::Kind::Constant};
    case ValueKind::Temporary: break;
  }
  return {};
}

// A buffer for each root in the arena, and one for each step's scratch memory.
std::vector<Buffer> make_buffers(const Program& program) {
  const Graph& graph = program.graph;
  std::vector<Buffer> buffers(graph.values.size() + program.steps.size());
  std::vector<bool> used(graph.values.size());
  for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    for (std::uint32_t i = 0; i < step.view_count(); ++i) {
      const ValueId id = program.view_values[step.first_view + i];
      if (id == kNoValue) continue;
      const ValueId root = program.memory.resolve(id).root;
      if (graph.values[root].kind != ValueKind::Temporary) continue;
      if (!used[root]) buffers[root] = {.bytes = bytes_of(graph.values[root]), .first = s, .last = s};
      used[root] = true;
      buffers[root].last = s;
    }
    buffers[graph.values.size() + s] = {.bytes = step.scratch_bytes, .first = s, .last = s};
  }
  return buffers;
}

}  // namespace

Error make_placements(const Reporter& report, Program& program) {
  const Graph& graph = program.graph;
  std::vector<Buffer> buffers = make_buffers(program);
  program.arena_bytes = plan_memory(buffers);
  program.footprint.arena = program.arena_bytes;
  program.arena = static_cast<std::byte*>(
      report.host->allocate(report.host->self, program.arena_bytes == 0 ? 1 : program.arena_bytes, kAlignment));
  if (program.arena == nullptr) {
    return report.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of intermediate results",
                       program.arena_bytes);
  }
  program.placements.resize(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Alias at = program.memory.resolve(id);
    Placement& placement = program.placements[id];
    placement = fixed_placement(graph.values[at.root]);
    placement.root = at.root;
    placement.offset = at.offset;
    if (graph.values[at.root].kind != ValueKind::Temporary) continue;
    placement.kind = Placement::Kind::Arena;
    placement.offset += static_cast<std::int64_t>(buffers[at.root].offset);
  }
  for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
    Step& step = program.steps[s];
    step.scratch_offset = buffers[graph.values.size() + s].offset;
    program.footprint.scratch = std::max(program.footprint.scratch, step.scratch_bytes);
  }
  return Error::Ok;
}

}  // namespace wb::engine
