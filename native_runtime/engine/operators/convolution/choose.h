// Which methods suit a convolution.
#pragma once

#include "engine/operators/convolution/method.h"

namespace wb::engine::WB_ISA::dense {

// Methods that can compute a convolution, and what they are expected to cost.
struct Candidates {
  static constexpr int kMost = 5;
  const Method* methods[kMost] = {};
  double cycles[kMost] = {};
  int count = 0;

  void add(const Method* method, double expected) {
    methods[count] = method;
    cycles[count++] = expected;
  }
  [[nodiscard]] const Method* cheapest() const {
    int best = 0;
    for (int i = 1; i < count; ++i) {
      if (cycles[i] < cycles[best]) best = i;
    }
    return methods[best];
  }
};

[[nodiscard]] Candidates candidate_methods(const Geometry& g, bool constant_weight);

// The quickest of them: each computes the layer, or a part of a large one, some times on scratch data (trial.cc). About
// 20 ms a layer at most; layers of the same kind are tried once.
[[nodiscard]] const Method* quickest_method(PrepareContext& context, const Convolution& convolution,
                                            const Candidates& candidates);

[[nodiscard]] inline const Method* choose_method(PrepareContext& context, const Convolution& convolution) {
  const Candidates candidates = candidate_methods(convolution.g, context.operands.inputs[1].constant);
  if (!context.setup.trial() || candidates.count == 1) return candidates.cheapest();
  return quickest_method(context, convolution, candidates);
}

}  // namespace wb::engine::WB_ISA::dense
