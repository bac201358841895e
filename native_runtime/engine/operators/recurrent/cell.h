// What an LSTM and a GRU do with the sums of their gates, for a vector of units.
#pragma once

#include "engine/operators/common/math.h"

namespace wb::engine::WB_ISA::recurrent {

// tanh(x) / (1 + exp(-gate)), with one division. tanh is exact where it is 1, and relatively exact near 0.
[[gnu::always_inline]] inline Floats gated_tanh(Floats x, Floats gate) {
  const Floats e = math::expm1(at_most(x * -2.0F, 40.0F));
  return -e / ((e + 2.0F) * (math::exp(-gate) + 1.0F));
}

struct LstmCell {
  static constexpr int kGates = 4;
  static constexpr int kSums = 4;  // vectors that the recurrent product adds to
  static constexpr bool kHasCell = true;

  // The sums of the gates start from what the inputs give.
  [[gnu::always_inline]] static void start(const float* gates, const float* /*bias*/, Floats* sums) {
#pragma GCC unroll 4
    for (int g = 0; g < kGates; ++g) sums[g] = load(gates + g * kFloats);
  }
  // Returns the hidden state; `cell` becomes the next one.
  [[gnu::always_inline]] static Floats finish(const Floats* sums, const float* /*gates*/, Floats /*hidden*/,
                                              Floats* cell) {
    *cell = *cell / (math::exp(-sums[1]) + 1.0F) + gated_tanh(sums[2], sums[0]);
    return gated_tanh(*cell, sums[3]);
  }
};

struct GruCell {
  static constexpr int kGates = 3;
  static constexpr int kSums = 3;
  static constexpr bool kHasCell = false;

  // The reset gate acts on the recurrent part of the new gate alone, so that it is summed up apart.
  [[gnu::always_inline]] static void start(const float* gates, const float* bias, Floats* sums) {
    sums[0] = load(gates);
    sums[1] = load(gates + kFloats);
    sums[2] = load(bias);
  }
  [[gnu::always_inline]] static Floats finish(const Floats* sums, const float* gates, Floats hidden, Floats* /*cell*/) {
    const Floats reset = math::sigmoid(sums[0]);
    const Floats candidate = math::tanh(fma(reset, sums[2], load(gates + 2 * kFloats)));
    const Floats update = math::sigmoid(sums[1]);
    return fma(update, hidden - candidate, candidate);
  }
};

}  // namespace wb::engine::WB_ISA::recurrent
