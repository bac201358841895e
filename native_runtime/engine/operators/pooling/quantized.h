// Pools of integers: the largest of them as it is; averages of sums, which are quantized like any number.
#pragma once

#include "engine/operators/pooling/pooling.h"

namespace wb::engine::WB_ISA {

[[nodiscard]] bool quantized_pool(const Graph& graph, const Node& node);
Error quantized_pool_prepare(PrepareContext& context);
void quantized_pool_run(const RunContext& context, const Pooling& pool);

}  // namespace wb::engine::WB_ISA
