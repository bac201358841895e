// Checks a graph that came from a file. What passes keeps every rule of graph.h, so that the passes, the plan and the
// operators need not look again.
#pragma once

#include "engine/graph.h"
#include "engine/report.h"

namespace wb::engine {

Error verify(const Reporter& report, const Graph& graph);

// Parts of it.
Error verify_attributes(const Reporter& report, const Node& node);
Error verify_types(const Reporter& report, const Graph& graph, const Node& node);
Error verify_program(const Reporter& report, const Node& node);  // node.post

}  // namespace wb::engine
