// Sums over a row that is in the cache, in four accumulators.
#pragma once

#include "engine/operators/common/lanes.h"

namespace wb::engine::WB_ISA {

// Sum of f(x) over n elements. What f makes of lanes beyond the end is dropped.
template <typename F>
[[gnu::always_inline]] inline float sum_row(const float* p, std::int64_t n, F f) {
  Floats sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * kFloats <= n; i += 4 * kFloats) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sums[v] += f(load(p + i + v * kFloats));
  }
  for (; i + kFloats <= n; i += kFloats) sums[0] += f(load(p + i));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    sums[1] += first_lanes(f(load_first(p + i, rest)), Floats{}, rest);
  }
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace wb::engine::WB_ISA
