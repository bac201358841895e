// Windows of 2-D pools over tensors of rank 3 (C, H, W) or 4 (N, C, H, W).
#pragma once

#include <algorithm>

#include "kernels/layout.h"

namespace wb::kernels::WB_ISA {

struct WindowAxis {
  std::int64_t in = 0, kernel = 1, stride = 1, padding = 0, dilation = 1, out = 0;
};

struct Planes {
  std::int64_t batch = 1, channels = 0;
};

// Strides of a pooled tensor; a missing batch has none.
struct PoolStrides {
  std::int64_t n, c, h, w;
  explicit PoolStrides(const Tensor& t)
      : n(t.rank == 4 ? t.strides[0] : 0),
        c(t.strides[t.rank - 3]),
        h(t.strides[t.rank - 2]),
        w(t.strides[t.rank - 1]) {}
};

Error read_planes(const KernelContext& context, std::uint32_t out_arg, Planes* planes);

// Arguments of a pool: the lists' places, 0 for an argument that it does not have.
struct WindowArgs {
  std::uint32_t kernel, stride, padding, dilation, ceil_mode;
};
// axes[0] is the height, axes[1] the width.
Error read_window(const KernelContext& context, const WindowArgs& args, WindowAxis* axes);

}  // namespace wb::kernels::WB_ISA
