// A loop nest over the elements of an output in memory order, with the places of the operands that belong to them.
#pragma once

#include "kernels/common/args.h"

namespace wb::kernels::WB_ISA {

inline constexpr int kMaxOperands = 4;  // the output and up to three inputs

// Dimensions from the outermost to the innermost, neighbours merged where every operand allows it. Operand 0 is the
// output, which is dense in this order. Strides count elements; 0 where an operand is broadcast.
struct Nest {
  int rank = 0;  // at least 1
  int operands = 0;
  std::int64_t numel = 0;
  std::int64_t sizes[kMaxRank];
  std::int64_t strides[kMaxOperands][kMaxRank];

  [[nodiscard]] std::int64_t inner() const { return sizes[rank - 1]; }
  [[nodiscard]] std::int64_t inner_stride(int operand) const { return strides[operand][rank - 1]; }
};

inline void build_nest(const Tensor& out, const Tensor* const* inputs, int count, Nest* nest) {
  nest->operands = count + 1;
  nest->numel = out.numel();
  int rank = 0;
  std::int64_t dense = nest->numel;
  for (int i = 0; i < out.rank; ++i) {
    const int d = out.dim_order[i];
    const std::int64_t size = out.sizes[d];
    if (size == 1) continue;
    dense = size == 0 ? 0 : dense / size;
    std::int64_t strides[kMaxOperands];
    strides[0] = dense;
    for (int k = 0; k < count; ++k) {
      const int own = d - (out.rank - inputs[k]->rank);
      strides[k + 1] = own < 0 || inputs[k]->sizes[own] == 1 ? 0 : inputs[k]->strides[own];
    }
    bool merge = rank > 0;
    for (int k = 0; k <= count && merge; ++k) merge = nest->strides[k][rank - 1] == strides[k] * size;
    if (!merge) nest->sizes[rank++] = 1;
    nest->sizes[rank - 1] *= size;
    for (int k = 0; k <= count; ++k) nest->strides[k][rank - 1] = strides[k];
  }
  if (rank == 0) {
    nest->sizes[0] = 1;
    for (int k = 0; k <= count; ++k) nest->strides[k][0] = 0;
    nest->strides[0][0] = 1;
    rank = 1;
  }
  nest->rank = rank;
}

// Walks the outer dimensions (all but the innermost) of a nest; `offset` holds the place of each operand in elements.
class Odometer {
 public:
  explicit Odometer(const Nest& nest) : nest_(nest) {}

  std::int64_t offset[kMaxOperands] = {};

  // To the next row; false after the last.
  bool next() {
    for (int d = nest_.rank - 2; d >= 0; --d) {
      for (int k = 0; k < nest_.operands; ++k) offset[k] += nest_.strides[k][d];
      if (++index_[d] < nest_.sizes[d]) return true;
      index_[d] = 0;
      for (int k = 0; k < nest_.operands; ++k) offset[k] -= nest_.strides[k][d] * nest_.sizes[d];
    }
    return false;
  }

 private:
  const Nest& nest_;
  std::int64_t index_[kMaxRank] = {};
};

}  // namespace wb::kernels::WB_ISA
