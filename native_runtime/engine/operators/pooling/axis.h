// Where a window lies along one axis of an image.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/graph.h"

namespace wb::engine::WB_ISA {

struct WindowAxis {
  std::int64_t size, kernel, stride, dilation, before, after;

  static WindowAxis rows(const Shape& in, const Window& w) {
    return {in.sizes[1], w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom};
  }
  static WindowAxis columns(const Shape& in, const Window& w) {
    return {in.sizes[2], w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right};
  }
};

// The part of the window at one output position that lies in the image: elements first, first + dilation, ...
struct Taps {
  std::int64_t first = 0, count = 0;
  std::int64_t padded = 0;  // with those that lie in the padding

  Taps(const WindowAxis& axis, std::int64_t position) {
    const std::int64_t start = position * axis.stride - axis.before;
    const std::int64_t low = std::max<std::int64_t>(0, -axis.before);
    const std::int64_t high = std::min(axis.size, axis.size + axis.after);
    const auto below = [&](std::int64_t end) {  // taps before `end`
      const std::int64_t taps = end <= start ? 0 : (end - start + axis.dilation - 1) / axis.dilation;
      return std::min(axis.kernel, taps);
    };
    const std::int64_t skipped = below(low);
    count = std::max<std::int64_t>(0, below(high) - skipped);
    first = start + skipped * axis.dilation;
    padded = below(axis.size + axis.after);
  }
};

}  // namespace wb::engine::WB_ISA
