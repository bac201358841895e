// Op::MatMul where values are quantized.
#pragma once

#include "engine/operators/quantized_matmul/constants.h"

namespace wb::engine::WB_ISA::quantized {

[[nodiscard]] bool matmul_quantized(const Graph& graph, const Node& node);

Error matmul_prepare(PrepareContext& context);
Error matmul_shape(ShapeContext& context);
void matmul_run(const RunContext& context);

}  // namespace wb::engine::WB_ISA::quantized
