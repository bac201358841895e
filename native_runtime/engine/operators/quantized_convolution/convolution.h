// Op::Convolution and Op::TransposedConvolution where values are quantized.
#pragma once

#include "engine/operators/quantized_matmul/constants.h"

namespace wb::engine::WB_ISA::quantized {

[[nodiscard]] bool convolution_quantized(const Graph& graph, const Node& node);

Error convolution_prepare(PrepareContext& context);
Error convolution_shape(ShapeContext& context);
void convolution_run(const RunContext& context);

}  // namespace wb::engine::WB_ISA::quantized
