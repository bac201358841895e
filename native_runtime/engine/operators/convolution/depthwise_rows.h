// One output row of a depthwise convolution: vectors over channels, several pixels at a time so that weights and inputs
// are loaded once for all of them.
#pragma once

#include "engine/operators/convolution/geometry.h"
#include "engine/operators/matmul/finish.h"

namespace wb::engine::WB_ISA::dense {

// Pixels of the largest block, and pointers that the blocks of any kernel may take.
inline constexpr int kDepthwisePixels = simd::kVectorRegisters == 32 ? 8 : 4;

struct DepthwiseRow {
  const Geometry& g;                   // channels: cin, as many as there are outputs
  const float* const* rows = nullptr;  // kh input rows; null where they are padding
  const float* taps = nullptr;         // [kh kw][channels, rounded up to vectors]
  const float* zeros = nullptr;        // a pixel of padding
  const float* bias = nullptr;
  bool clamp = false;
  float low = 0, high = 0;
};

// Computes the whole row.
void depthwise_row(const DepthwiseRow& row, float* to);

}  // namespace wb::engine::WB_ISA::dense
