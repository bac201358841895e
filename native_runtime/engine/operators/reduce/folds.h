// How a reduction takes one more element into its accumulator, in vectors, and two accumulators into one.
#pragma once

#include "engine/operators/common/lanes.h"

namespace wb::engine::WB_ISA {

struct SumFold {
  float start = 0;
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const { return acc + x; }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return a + b; }
};
struct ProdFold {
  float start = 1;
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const { return acc * x; }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return a * b; }
};
// NaN wins.
struct MaxFold {
  float start = -__builtin_huge_valf();
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const { return (x > acc) | (x != x) ? x : acc; }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return take(a, b); }
};
struct MinFold {
  float start = __builtin_huge_valf();
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const { return (x < acc) | (x != x) ? x : acc; }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return take(a, b); }
};
struct AnyFold {
  float start = 0;
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const { return x != 0.0F ? splat(1.0F) : acc; }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return take(a, b); }
};
struct AllFold {
  float start = 1;
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const { return x == 0.0F ? Floats{} : acc; }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return take(a, b); }
};
struct L1Fold {
  float start = 0;
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const { return acc + abs(x); }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return a + b; }
};
struct L2Fold {
  float start = 0;
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const { return fma(x, x, acc); }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return a + b; }
};
// Squares of what is beyond the mean (of a row, or of each column).
struct DeviationFold {
  float start = 0;
  Floats mean;
  [[gnu::always_inline]] Floats take(Floats acc, Floats x) const {
    const Floats d = x - mean;
    return fma(d, d, acc);
  }
  [[gnu::always_inline]] Floats join(Floats a, Floats b) const { return a + b; }
};

// Vectors that are folded into one accumulator before it is joined with the total: sums of many elements keep their
// accuracy.
inline constexpr std::int64_t kFoldChain = 128;

template <typename F>
[[gnu::always_inline]] inline float fold_lanes(const F& f, Floats acc) {
  Floats all = splat(f.start);
  for (int i = 0; i < kFloats; ++i) all = f.join(all, splat(acc[i]));
  return all[0];
}
// By halves, as vectors.
[[gnu::always_inline]] inline float fold_lanes(const SumFold& /*f*/, Floats acc) {
  return kernels::WB_ISA::sum_lanes<float>(acc);
}

// All n elements from p on.
template <typename F>
[[gnu::always_inline]] inline Floats fold_run(const F& f, const float* p, std::int64_t n) {
  const Floats start = splat(f.start);
  Floats total = start;
  std::int64_t i = 0;
  while (i + kFloats <= n) {
    Floats acc[4] = {start, start, start, start};
    const std::int64_t end = n - i > 4 * kFoldChain * kFloats ? i + 4 * kFoldChain * kFloats : n;
    for (; i + 4 * kFloats <= end; i += 4 * kFloats) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) acc[v] = f.take(acc[v], load(p + i + v * kFloats));
    }
    for (; i + kFloats <= end; i += kFloats) acc[0] = f.take(acc[0], load(p + i));
    total = f.join(total, f.join(f.join(acc[0], acc[1]), f.join(acc[2], acc[3])));
  }
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    const Floats taken = f.take(start, load_first(p + i, rest));
    total = f.join(total, first_lanes(taken, start, rest));
  }
  return total;
}

}  // namespace wb::engine::WB_ISA
