// Transposes of square blocks in registers.
#pragma once

#include "engine/operators/matmul/tile.h"

namespace wb::engine::WB_ISA::dense {

namespace transposing {
using Lanes = simd::Vec<std::int32_t>;

// Of two vectors a and b: at the places where bit Step of the lane is not set a, else b; First takes a's and b's lower
// halves of each group of 2 Step lanes, the other their upper halves.
template <int Step, bool First>
constexpr Lanes order() {
  Lanes lanes{};
  for (int i = 0; i < kWidth; ++i) {
    const bool upper = (i & Step) != 0;
    lanes[i] = First ? (upper ? i - Step + kWidth : i) : (upper ? i + kWidth : i + Step);
  }
  return lanes;
}

template <int Step>
[[gnu::always_inline]] inline void stage(Vector* v) {
  if constexpr (Step > 0) {
    const Lanes first = order<Step, true>();
    const Lanes second = order<Step, false>();
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) {
      if ((i & Step) != 0) continue;
      const Vector a = v[i];
      const Vector b = v[i + Step];
      v[i] = __builtin_shuffle(a, b, first);
      v[i + Step] = __builtin_shuffle(a, b, second);
    }
    stage<Step / 2>(v);
  }
}
}  // namespace transposing

// v[i][j] becomes v[j][i].
[[gnu::always_inline]] inline void transpose(Vector* v) { transposing::stage<kWidth / 2>(v); }

}  // namespace wb::engine::WB_ISA::dense
