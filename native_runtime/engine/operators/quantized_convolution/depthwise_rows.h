// One output row of a depthwise convolution of integers: blocks of channels, several pixels at a time.
#pragma once

#include "engine/operators/quantized_convolution/method.h"
#include "engine/operators/quantized_convolution/spread.h"

namespace wb::engine::WB_ISA::quantized {

struct DepthwiseRow {
  const Convolution& convolution;
  const std::uint8_t* const* rows = nullptr;  // kh input rows; null where they are padding
  std::uint8_t flip = 0;
  const Finish& finish;
  bool direct = false;   // Store::direct, with the scales of the blocks for it
  std::int64_t row = 0;  // of the result, seen as a matrix of pixels: that of the first one
};

// How many taps of a column of the kernel are multiplied together, and how often that is done.
[[nodiscard]] inline std::int64_t tap_groups(const Geometry& g) { return (g.kh + kDotDepth - 1) / kDotDepth; }
[[nodiscard]] inline std::int64_t channel_blocks(std::int64_t channels) {
  return (channels + kSpreadChannels - 1) / kSpreadChannels;
}
// The first channel of a block: the last one overlaps with the one before it, so that it is whole.
[[nodiscard]] inline std::int64_t block_channel(std::int64_t channels, std::int64_t block) {
  const std::int64_t last = channels - kSpreadChannels;
  return last < 0 ? 0 : block * kSpreadChannels < last ? block * kSpreadChannels : last;
}

// Computes the whole row, whose first pixel is at `to`.
void depthwise_row(const DepthwiseRow& row, std::byte* to);

}  // namespace wb::engine::WB_ISA::quantized
