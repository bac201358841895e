// Windows that move over images: convolutions and pools.
#pragma once

#include "backends/xnnpack/builder.h"

namespace wb::xnnpack {

// Pixels of the result along one dimension, rounded down; 0 when the window does not fit.
constexpr std::int64_t window_count(std::int64_t pixels, std::int64_t padding, std::int64_t kernel, std::int64_t stride,
                                    std::int64_t dilation) {
  const std::int64_t covered = dilation * (kernel - 1) + 1;
  return pixels + padding < covered ? 0 : (pixels + padding - covered) / stride + 1;
}

}  // namespace wb::xnnpack
