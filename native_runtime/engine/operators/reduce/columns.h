// Reductions of columns: blocks of a few vectors whose accumulators stay in registers while the rows go by.
#pragma once

#include "engine/operators/reduce/folds.h"
#include "engine/operators/reduce/layout.h"

namespace wb::engine::WB_ISA {

// Rows of a column block: for each element of `outer`, `rows` of them `stride` apart.
struct ColumnRows {
  Extents outer;
  std::int64_t rows = 1, stride = 0;

  explicit ColumnRows(const Extents& reduced) : outer(reduced) {
    if (outer.rank == 0) return;
    --outer.rank;
    rows = outer.sizes[outer.rank];
    stride = outer.strides[outer.rank];
  }
};

// folds[v] folds vector v. `last` < kFloats: the last vector has so many elements only.
template <int kVectors, typename F>
[[gnu::always_inline]] inline void fold_columns(const F (&folds)[kVectors], const float* p, const ColumnRows& at,
                                                int last, Floats (&totals)[kVectors]) {
  for (int v = 0; v < kVectors; ++v) totals[v] = splat(folds[v].start);
  const std::int64_t outer = at.outer.count();
  for (std::int64_t o = 0; o < outer; ++o) {
    const float* row = p + at.outer.offset(o);
    std::int64_t r = 0;
    while (r < at.rows) {
      Floats acc[kVectors];
      for (int v = 0; v < kVectors; ++v) acc[v] = splat(folds[v].start);
      const std::int64_t end = at.rows - r > kFoldChain ? r + kFoldChain : at.rows;
      if (last == kFloats) {
        for (; r < end; ++r, row += at.stride) {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) acc[v] = folds[v].take(acc[v], load(row + v * kFloats));
        }
      } else {
        for (; r < end; ++r, row += at.stride) {
#pragma GCC unroll 4
          for (int v = 0; v + 1 < kVectors; ++v) acc[v] = folds[v].take(acc[v], load(row + v * kFloats));
          acc[kVectors - 1] =
              folds[kVectors - 1].take(acc[kVectors - 1], load_first(row + (kVectors - 1) * kFloats, last));
        }
      }
      for (int v = 0; v < kVectors; ++v) totals[v] = folds[v].join(totals[v], acc[v]);
    }
  }
}

}  // namespace wb::engine::WB_ISA
