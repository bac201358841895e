// The sizes of a product, and where its matrices stand.
#pragma once

#include "engine/operator.h"

namespace wb::engine::WB_ISA::dense {

// Sizes of a product, seen as `batch` products of m x k and k x n.
struct Sizes {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  bool one_b = false;  // the same right-hand side in all; then batch is 1 and m counts all rows
};

[[nodiscard]] inline std::int64_t leading(const Shape& shape) {
  std::int64_t count = 1;
  for (int d = 0; d + 2 < shape.rank; ++d) count *= shape.sizes[d];
  return count;
}

[[nodiscard]] inline Sizes sizes_of(const Node& node, const Operands& operands) {
  const Shape& a = operands.inputs[0].shape;
  const Shape& b = operands.inputs[1].shape;
  Sizes s;
  s.m = a.sizes[a.rank - 2];
  s.k = a.sizes[a.rank - 1];
  s.n = b.sizes[b.rank - (node.attributes.transpose_b ? 2 : 1)];
  s.batch = leading(operands.outputs[0].shape);
  // One matrix for all rows of a, in their order.
  if (leading(b) == 1 && leading(a) == s.batch) {
    s.one_b = true;
    s.m *= s.batch;
    s.batch = 1;
  }
  return s;
}

// Where the matrices of the i-th product of a batch stand.
[[nodiscard]] inline std::int64_t batch_index(const Shape& shape, const Shape& out, std::int64_t index) {
  std::int64_t result = 0;
  std::int64_t step = 1;
  const int shift = out.rank - shape.rank;
  for (int d = out.rank - 3; d >= 0; --d) {
    const std::int64_t at = index % out.sizes[d];
    index /= out.sizes[d];
    if (d < shift) continue;
    const std::int64_t size = shape.sizes[d - shift];
    if (size != 1) result += at * step;
    step *= size;
  }
  return result;
}

}  // namespace wb::engine::WB_ISA::dense
