// The ways to compute a convolution of quantized values.
#pragma once

#include "engine/operators/convolution/geometry.h"
#include "engine/operators/quantized_matmul/constants.h"

namespace wb::engine::WB_ISA::quantized {

using dense::Geometry;

struct Convolution;

struct ConvolutionMethod {
  // Packs the weights, which are constant.
  Error (*prepare)(PrepareContext& context, Convolution& convolution);
  // Bytes of scratch memory.
  std::int64_t (*shape)(const Convolution& convolution, int threads);
  void (*run)(const RunContext& context, const Convolution& convolution, const Finish& finish);
};

// Depthwise: blocks of kSpreadChannels channels; of each the weights, and what sums begin with and become, as the lanes
// of a block stand.
struct DepthwiseBlocks {
  const std::int8_t* weights = nullptr;
  const std::int32_t* start = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;
  const float* direct_scale = nullptr;  // as those of Columns
  const float* direct_bias = nullptr;
  float direct_inverse = 0;
};

// The state of a node.
struct Convolution {
  const ConvolutionMethod* method = nullptr;
  Geometry g;
  Weights weights;                  // of groups, one matrix each
  const Weights* phases = nullptr;  // transposed: the same of each phase, then of pixels without taps
  DepthwiseBlocks blocks;
  const std::uint8_t* padding = nullptr;  // depthwise: a pixel of it
};

extern const ConvolutionMethod kProductMethod, kDepthwiseMethod, kTransposedMethod;

// The weight of one group as the right-hand side of a product; the next one stands cout_group() weight_order.cout
// further.
[[nodiscard]] IntegerSource weight_source(const Geometry& g, const WeightOrder& order, const TensorView& weight);

}  // namespace wb::engine::WB_ISA::quantized
