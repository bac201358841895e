// How the operands of a pointwise node lie on its result: dimensions along which the same operands repeat are merged,
// and the two innermost ones cut into rectangles.
#pragma once

#include <cstdint>

#include "engine/operator.h"
#include "engine/operators/common/program.h"

namespace wb::engine::WB_ISA {

struct PointwiseLayout {
  // Merged dimensions, outermost first; the last two are the rows and columns that rectangles are cut from.
  int rank = 0;
  std::int64_t sizes[kMaxRank + 2] = {};
  // strides[k][d] of input k, 0 where it repeats.
  std::int64_t strides[StepProgram::kMaxInputs][kMaxRank + 2] = {};
  std::int64_t block_rows = 1, block_cols = 1;
  std::int64_t row_blocks = 0, col_blocks = 0, blocks = 0;

  [[nodiscard]] std::int64_t rows() const { return sizes[rank - 2]; }
  [[nodiscard]] std::int64_t cols() const { return sizes[rank - 1]; }
  [[nodiscard]] std::int64_t row_stride(int k) const { return strides[k][rank - 2]; }
  [[nodiscard]] std::int64_t col_stride(int k) const { return strides[k][rank - 1]; }
  // True if input k is the same for every rectangle of the same columns, for these begin at the same element.
  [[nodiscard]] bool repeats_by_row(int k) const;

  void merge(const Shape& out, const TensorView* inputs, int count);
  // Rectangles of at most `limit` elements.
  void cut(std::int64_t limit);
};

// The rectangle with number `index`.
struct Rectangle {
  std::int64_t out = 0;  // its first element in the result, the rows of which are cols() apart
  std::int64_t rows = 0, cols = 0;
  std::int64_t inputs[StepProgram::kMaxInputs] = {};

  Rectangle(const PointwiseLayout& layout, int count, std::int64_t index);
};

}  // namespace wb::engine::WB_ISA
