// The ways to compute a convolution. prepare chooses one for the upper bounds of the sizes.
#pragma once

#include "engine/operators/convolution/geometry.h"
#include "engine/operators/matmul/constants.h"
#include "engine/operators/matmul/finish.h"

namespace wb::engine::WB_ISA::dense {

struct Convolution;

struct Method {
  const char* name;
  // Packs the weights, which are constant.
  Error (*prepare)(PrepareContext& context, Convolution& convolution);
  // Sets what depends on the sizes; returns the elements of scratch memory.
  std::int64_t (*shape)(Convolution& convolution, int threads);
  void (*run)(const RunContext& context, const Convolution& convolution, const Finish& finish);
};

// The state of a node.
struct Convolution {
  const Method* method = nullptr;
  Geometry g;
  const float* input = nullptr;  // a constant image, as float
  const float* bias = nullptr;   // constant, as float
  bool packed = false;           // the weights are constant
  PackedMatrix weights;          // Product: of the first group; the others follow
  const float* taps = nullptr;   // Depthwise, Winograd: as the method wants them
  const float* zeros = nullptr;  // Depthwise: a pixel of padding
  std::int64_t block = 0;        // Winograd: tiles at a time
  std::int64_t parts = 1;        // Winograd: in which the output channels are split among threads
};

extern const Method kProductMethod, kDepthwiseMethod;
// Weights transformed while packing, or in each run.
extern const Method kWinograd2Method, kWinograd4Method, kWinograd2TapsMethod, kWinograd4TapsMethod;

// The weight of one group as the right-hand side of a product; the next one stands cout_group() weight_order.cout
// further.
[[nodiscard]] MatrixSource weight_source(const Geometry& g, const WeightOrder& order, const TensorView& weight);

inline const float* input_of(const RunContext& context, const Convolution& convolution) {
  return convolution.input != nullptr ? convolution.input : context.operands.inputs[0].as<const float>();
}

}  // namespace wb::engine::WB_ISA::dense
