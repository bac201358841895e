// How the elements of a value stand in one that it was made of by Transpose, Reshape and Slice nodes.
#pragma once

#include <vector>

#include "engine/passes/draft.h"

namespace wb::engine {

// A run of indices of one dimension of the base: `size` of them, `step` apart.
struct Atom {
  int dimension = 0;
  std::int64_t size = 1, step = 1;
};

struct StridedView {
  ValueId base = kNoValue;
  std::vector<std::vector<Atom>> dimensions;  // of the value; the atoms of each, outermost first
  std::int64_t begin[kMaxRank] = {};          // index in each dimension of the base that the view begins at
};

// The views of `id` in all values that it was made of, the furthest first. They hold for all sizes.
[[nodiscard]] std::vector<StridedView> views_of(const Draft& draft, ValueId id);

}  // namespace wb::engine
