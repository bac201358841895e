// Sums and means of integers that stand for numbers, over neighbouring dimensions.
#pragma once

#include "engine/operator.h"

namespace wb::engine::WB_ISA {

[[nodiscard]] bool quantized_reduce(const Graph& graph, const Node& node);
Error quantized_reduce_prepare(PrepareContext& context);
void quantized_reduce_run(const RunContext& context);

}  // namespace wb::engine::WB_ISA
