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
// The same without a look at NaN, of which it may lose some, and a sum beside it that is NaN if there was one (or two
// infinities): two steps that the processor takes at once instead of four.
struct QuickMax {
  Floats best = splat(-__builtin_huge_valf());
  Floats sum{};

  [[gnu::always_inline]] void take(Floats x) {
    best = x > best ? x : best;
    sum += x;
  }
};
// True if the largest of what these took may be wrong.
template <int kCount>
[[gnu::always_inline]] inline bool is_doubtful(const QuickMax (&quick)[kCount]) {
  Floats sums = quick[0].sum;
  for (int v = 1; v < kCount; ++v) sums += quick[v].sum;
  return any(sums != sums);
}
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
  return across(acc, [&f](Floats a, Floats b) { return f.join(a, b); });
}

// All n elements from p on.
template <typename F>
[[gnu::always_inline]] inline Floats fold_run_exactly(const F& f, const float* p, std::int64_t n) {
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

template <typename F>
[[gnu::always_inline]] inline Floats fold_run(const F& f, const float* p, std::int64_t n) {
  return fold_run_exactly(f, p, n);
}
[[gnu::always_inline]] inline Floats fold_run(const MaxFold& f, const float* p, std::int64_t n) {
  QuickMax quick[4];
  std::int64_t i = 0;
  for (; i + 4 * kFloats <= n; i += 4 * kFloats) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) quick[v].take(load(p + i + v * kFloats));
  }
  for (; i + kFloats <= n; i += kFloats) quick[0].take(load(p + i));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    const Floats x = load_first(p + i, rest);  // the other lanes are 0 in the sum
    const Floats candidate = first_lanes(x, splat(f.start), rest);
    quick[1].best = candidate > quick[1].best ? candidate : quick[1].best;
    quick[1].sum += x;
  }
  if (is_doubtful(quick)) return fold_run_exactly(f, p, n);
  return f.join(f.join(quick[0].best, quick[1].best), f.join(quick[2].best, quick[3].best));
}

}  // namespace wb::engine::WB_ISA
