// The ways to compute a convolution. Each says how much scratch memory it needs and computes one whole convolution.
#pragma once

#include "kernels/convolution/slab.h"

namespace wb::kernels::WB_ISA {

enum class ConvMethod : std::uint8_t {
  Pointwise,          // 1x1: a matrix product on the tensors themselves
  Product,            // slabs, gathered panel by panel into a matrix product
  Depthwise,          // one input channel a group: vectors along the rows of slabs
  DepthwiseChannels,  // the same with the channels innermost in memory: vectors along the channels
  Transposed,         // a matrix product, spread over the output
};

struct ConvPlan {
  ConvMethod method = ConvMethod::Product;
  Slab slab;
  std::int64_t block_channels = 0, block_rows = 0;  // Transposed: output channels and input rows at a time
  std::size_t scratch = 0;                          // bytes
};

// Picks the method; false if the geometry can't be addressed. Output strides need not be known, except whether the
// channels are innermost.
[[nodiscard]] bool plan_convolution(const ConvGeometry& g, bool out_channels_inner, std::size_t element,
                                    ConvPlan* plan);

template <typename T>
void pointwise_convolution(const ConvGeometry& g, const ConvData<T>& data, std::byte* scratch);
template <typename T>
void product_convolution(const ConvGeometry& g, const Slab& slab, const ConvData<T>& data, std::byte* scratch);
template <typename T>
void depthwise_convolution(const ConvGeometry& g, const Slab& slab, const ConvData<T>& data, std::byte* scratch);
template <typename T>
void depthwise_channels_convolution(const ConvGeometry& g, const ConvData<T>& data, std::byte* scratch);
template <typename T>
void transposed_convolution(const ConvGeometry& g, const ConvPlan& plan, const ConvData<T>& data, std::byte* scratch);

}  // namespace wb::kernels::WB_ISA
