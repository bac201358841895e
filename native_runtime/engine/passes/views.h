// Values that stand inside the memory of others: nodes that would only copy need not run.
#pragma once

#include <vector>

#include "engine/graph.h"

namespace wb::engine {

// Value `root` holds the elements, from byte `offset` on. A value that stands for itself is its own root.
struct Alias {
  ValueId root = kNoValue;
  std::int64_t offset = 0;
  bool whole = true;  // it is all of the root, whatever the sizes
};

struct Views {
  std::vector<Alias> aliases;  // per value
  std::vector<bool> skipped;   // per node: its result is in place already
  [[nodiscard]] Alias resolve(ValueId id) const;
};

// `enabled` false: every node runs.
[[nodiscard]] Views find_views(const Graph& graph, bool enabled);

}  // namespace wb::engine
