// Copies of elements from anywhere at regular distances to a dense result: what Transpose, Expand and Slice are.
#pragma once

#include "engine/operator.h"

namespace wb::engine::WB_ISA {

struct StridedCopy {
  // Of the result, outermost first; neighbours that lie alike are merged. Strides and `begin` count elements of the
  // source; a stride of 0 repeats.
  int rank = 0;
  std::int64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};
  std::int64_t begin = 0;
  std::size_t element = 4;  // bytes

  void push(std::int64_t size, std::int64_t stride);  // from the outermost dimension to the innermost
  void run(Pool& pool, const void* from, void* to) const;
};

// The state of operators that are one such copy.
Error prepare_copy(PrepareContext& context);
void run_copy(const RunContext& context);

}  // namespace wb::engine::WB_ISA
