#include "engine/operators/reduce/layout.h"

namespace wb::engine::WB_ISA {

ReduceLayout::ReduceLayout(const Shape& in, std::uint32_t mask) {
  std::int64_t sizes[kMaxRank] = {};
  bool reduces[kMaxRank] = {};
  int used = 0;
  for (int d = 0; d < in.rank; ++d) {
    const bool reduce = (mask >> d & 1U) != 0;
    (reduce ? count : outputs) *= in.sizes[d];
    if (in.sizes[d] == 1) continue;
    if (used > 0 && reduces[used - 1] == reduce) {
      sizes[used - 1] *= in.sizes[d];
    } else {
      sizes[used] = in.sizes[d];
      reduces[used++] = reduce;
    }
  }
  if (used == 0) return;
  inner = sizes[used - 1];
  inner_reduced = reduces[used - 1];
  std::int64_t strides[kMaxRank] = {};
  std::int64_t stride = inner;
  for (int d = used - 2; d >= 0; --d) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  for (int d = 0; d < used - 1; ++d) (reduces[d] ? reduced : kept).push(sizes[d], strides[d]);
}

}  // namespace wb::engine::WB_ISA
