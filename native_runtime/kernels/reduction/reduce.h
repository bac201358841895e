// Reductions over any set of dimensions, in any dim order.
//
// The dimensions are walked in the input's memory order. Where the innermost is reduced, rows are folded into one
// accumulator each; where it is kept, a row is folded into as many accumulators, element by element.
#pragma once

#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {

inline constexpr std::size_t kMaxAccumulator = 32;  // bytes

struct ReduceOp {
  std::size_t accumulator = 8;  // bytes
  // Sets n accumulators to the neutral element.
  void (*init)(void* accumulators, std::int64_t n);
  // Folds n elements of the lane into one accumulator.
  void (*row)(void* accumulator, const void* data, std::int64_t n);
  // Folds element i of the lane into accumulator i, for i in [0, n).
  void (*column)(void* accumulators, const void* data, std::int64_t n);
  // Writes n results; `count` elements were folded into each.
  void (*finish)(void* out, const void* accumulators, std::int64_t n, double count, double parameter);
};

struct ReduceLayout {
  int kept = 0;  // at least 1; the last is the innermost
  int reduced = 0;
  bool inner_reduced = false;
  std::int64_t kept_sizes[kMaxRank];
  std::int64_t kept_from[kMaxRank];  // elements
  std::int64_t kept_to[kMaxRank];
  std::int64_t reduced_sizes[kMaxRank];
  std::int64_t reduced_from[kMaxRank];
  std::int64_t count = 1;  // elements folded into each result
  std::int64_t results = 1;
};

// `mask` holds the reduced dimensions of `self`; `out` keeps them as size 1 or drops them.
void layout_reduction(const Tensor& self, const Tensor& out, std::uint32_t mask, bool keepdim, ReduceLayout* layout);
// The shape of the result.
void reduced_shape(const Tensor& self, std::uint32_t mask, bool keepdim, Shape* shape);

struct ReduceRun {
  const ReduceOp* op = nullptr;
  Lane lane = Lane::F32;          // of the input
  LoadFunction load = nullptr;    // null: the input is an array of the lane's type
  StoreFunction store = nullptr;  // from the lane of the results
  std::uint8_t from_size = 0;     // bytes of an element
  std::uint8_t to_size = 0;
  double parameter = 0;
};

void run_reduction(const ReduceLayout& layout, const ReduceRun& run, const void* from, void* to);

}  // namespace wb::kernels::WB_ISA
