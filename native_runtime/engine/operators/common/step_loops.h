// Loops of steps: functors take and give vectors, the last columns of a row come as a shorter vector.
#pragma once

#include "engine/operators/common/lanes.h"
#include "engine/operators/common/steps.h"

namespace wb::engine::WB_ISA {

// Rows that follow each other without a gap are one long row.
template <int kArity>
[[gnu::always_inline]] inline StepArguments flattened(StepArguments s) {
  if (s.rows <= 1) return s;
  bool dense = s.out_row == s.cols;
  for (int k = 0; k < kArity; ++k) dense &= s.in[k].row == s.cols;
  if (dense) {
    s.cols *= s.rows;
    s.rows = 1;
  }
  return s;
}

template <int kArity, typename F>
[[gnu::always_inline]] inline Floats call(const F& f, const float* const (&in)[3], std::int64_t i) {
  if constexpr (kArity == 1) return f(load(in[0] + i));
  if constexpr (kArity == 2) return f(load(in[0] + i), load(in[1] + i));
  if constexpr (kArity == 3) return f(load(in[0] + i), load(in[1] + i), load(in[2] + i));
}
template <int kArity, typename F>
[[gnu::always_inline]] inline Floats call_first(const F& f, const float* const (&in)[3], std::int64_t i, int n) {
  if constexpr (kArity == 1) return f(load_first(in[0] + i, n));
  if constexpr (kArity == 2) return f(load_first(in[0] + i, n), load_first(in[1] + i, n));
  if constexpr (kArity == 3) return f(load_first(in[0] + i, n), load_first(in[1] + i, n), load_first(in[2] + i, n));
}

template <int kArity, typename F>
void step_loop(const StepArguments& arguments) {
  const StepArguments s = flattened<kArity>(arguments);
  const F f(s.a, s.b);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    float* const out = s.out + r * s.out_row;
    const float* in[3] = {};
    for (int k = 0; k < kArity; ++k) in[k] = s.in[k].data + r * s.in[k].row;
    std::int64_t i = 0;
    for (; i + 2 * kFloats <= s.cols; i += 2 * kFloats) {
      const Floats first = call<kArity>(f, in, i);
      const Floats second = call<kArity>(f, in, i + kFloats);
      store(out + i, first);
      store(out + i + kFloats, second);
    }
    for (; i + kFloats <= s.cols; i += kFloats) store(out + i, call<kArity>(f, in, i));
    if (i < s.cols) {
      const int n = static_cast<int>(s.cols - i);
      store_first(out + i, call_first<kArity>(f, in, i, n), n);
    }
  }
}

// Functors without parameters.
struct Plain {
  Plain(float /*a*/, float /*b*/) {}
};

}  // namespace wb::engine::WB_ISA
