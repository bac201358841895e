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

[[nodiscard]] inline const Method* choose_method(const Geometry& g, bool constant_weight) {
  return candidate_methods(g, constant_weight).cheapest();
}

}  // namespace wb::engine::WB_ISA::dense
