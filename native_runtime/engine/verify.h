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

// Of one value: kinds, bits, scales, zero points.
Error verify_quantization(const Reporter& report, std::size_t index, const Value& value);
// May the node read (write) this value, which is quantized?
[[nodiscard]] bool verify_quantized_input(const Graph& graph, const Node& node, std::size_t input);
[[nodiscard]] bool verify_quantized_output(const Graph& graph, const Node& node, std::size_t output);

}  // namespace wb::engine
