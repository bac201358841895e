// Advanced indexing: the places in a tensor that a list of index tensors names.
#pragma once

#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {

// self[i0, :, i1, ...]: index tensors broadcast to the shape `picked`; the dimensions without one stay. In the result
// the picked dimensions stand where the indexed ones were if those are neighbours, else in front.
struct Indexing {
  bool ready = false;
  int indexed = 0;         // dimensions of self that have an index
  std::uint32_t mask = 0;  // which
  int place = 0;           // dimension of the result where `picked` begins
  std::int64_t count = 0;  // elements of `picked`
  std::int64_t step = 0;   // of one picked element in the result, where the picked dimensions are dense neighbours
  bool dense = false;
  bool boolean = false;
  Shape picked;
  Shape result;
  CopyPlan copy;                          // the kept dimensions, between self and the result, at one picked element
  std::int64_t picked_strides[kMaxRank];  // in the result
  std::int64_t* places = nullptr;         // scratch: where each picked element stands in self, in elements
};

Error check_indices(KernelContext& context, std::uint32_t self, std::uint32_t list);
// Scratch that `plan_indices` needs; in prepare.
void request_index_scratch(KernelContext& context, std::uint32_t list);
// Reads the indices: fills count, places (in scratch), picked and result. Index values out of range are an error.
Error read_indices(KernelContext& context, const Tensor& self, std::uint32_t list, Indexing* indexing);
// With the sizes and strides of the result known: the copy and the strides of the picked dimensions. `into_self`: the
// copy writes self.
void plan_indexed_copy(const Tensor& self, const std::int64_t* result_strides, std::size_t element, bool into_self,
                       Indexing* indexing);
// Place of picked element i in the result.
[[nodiscard]] std::int64_t place_in_result(const Indexing& indexing, std::int64_t i);

}  // namespace wb::kernels::WB_ISA
