#include "engine/operators/attention/pack.h"

#include <algorithm>
#include <cstring>

#include "engine/operators/matmul/transpose.h"

namespace wb::engine::WB_ISA::attention {
namespace {

namespace simd = ::wb::kernels::WB_ISA;

using dense::kPanel;
using dense::kWidth;

// kWidth keys, kWidth elements of each: to[d kPanel + j] = factor from[j stride + d].
[[gnu::always_inline]] inline void pack_square(const float* from, std::int64_t stride, float factor, float* to) {
  dense::Vector square[kWidth];
#pragma GCC unroll 16
  for (int j = 0; j < kWidth; ++j) square[j] = simd::load(from + j * stride) * factor;
  dense::transpose(square);
#pragma GCC unroll 16
  for (int d = 0; d < kWidth; ++d) simd::store(to + d * kPanel, square[d]);
}

}  // namespace

void pack_keys(const float* keys, std::int64_t stride, std::int64_t count, std::int64_t size, float factor,
               float* panels) {
  for (std::int64_t j0 = 0; j0 < count; j0 += kPanel) {
    const std::int64_t in_panel = std::min<std::int64_t>(kPanel, count - j0);
    std::int64_t j = 0;
    for (; j + kWidth <= in_panel; j += kWidth) {
      const float* from = keys + (j0 + j) * stride;
      std::int64_t d = 0;
      for (; d + kWidth <= size; d += kWidth) pack_square(from + d, stride, factor, panels + d * kPanel + j);
      for (; d < size; ++d) {
        for (int i = 0; i < kWidth; ++i) panels[d * kPanel + j + i] = factor * from[i * stride + d];
      }
    }
    for (; j < in_panel; ++j) {
      for (std::int64_t d = 0; d < size; ++d) panels[d * kPanel + j] = factor * keys[(j0 + j) * stride + d];
    }
    for (std::int64_t d = 0; in_panel < kPanel && d < size; ++d) {
      std::memset(panels + d * kPanel + in_panel, 0, static_cast<std::size_t>(kPanel - in_panel) * sizeof(float));
    }
    panels += size * kPanel;
  }
}

void pack_values(const float* values, std::int64_t stride, std::int64_t count, std::int64_t size, std::int64_t width,
                 float* rows) {
  for (std::int64_t j = 0; j < count; ++j) {
    std::memcpy(rows, values + j * stride, static_cast<std::size_t>(size) * sizeof(float));
    std::memset(rows + size, 0, static_cast<std::size_t>(width - size) * sizeof(float));
    rows += width;
  }
}

}  // namespace wb::engine::WB_ISA::attention
