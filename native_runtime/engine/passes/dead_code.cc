// Takes away nodes whose results nobody reads.
#include "engine/passes/draft.h"

namespace wb::engine {

void remove_dead_code(Draft& draft) {
  std::vector<bool> needed(draft.graph.values.size());
  for (std::size_t i = 0; i < needed.size(); ++i) needed[i] = draft.graph.values[i].kind == ValueKind::Output;
  for (std::size_t n = draft.graph.nodes.size(); n-- > 0;) {
    Node& node = draft.graph.nodes[n];
    bool used = false;
    for (const ValueId id : node.outputs) used = used || (id != kNoValue && needed[id]);
    if (!used) {
      node.outputs.clear();
      continue;
    }
    for (const ValueId id : node.inputs) {
      if (id != kNoValue) needed[id] = true;
    }
    for (const ValueId id : node.post_inputs) needed[id] = true;
  }
  draft.sweep();
  std::erase_if(draft.taps, [&](const Tap& tap) {
    const ValueKind kind = draft.value(tap.value).kind;
    return kind == ValueKind::Temporary && !needed[tap.value];
  });
  draft.index();
}

}  // namespace wb::engine
