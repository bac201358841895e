// Checks of a kernel's arguments against a signature, and helpers that read them. Everything in a program is untrusted.
#pragma once

#include <limits>

#include "kernels/common/types.h"
#include "kernels/registry.h"

namespace wb::kernels::WB_ISA {

// Sizes under construction, before an output is resized to them.
struct Shape {
  std::int32_t sizes[kMaxRank];
  int rank = 0;

  [[nodiscard]] std::span<const std::int32_t> span() const { return {sizes, static_cast<std::size_t>(rank)}; }
  [[nodiscard]] std::int64_t numel() const {
    std::int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= sizes[d];
    return count;
  }
  void assign(const Tensor& tensor) {
    rank = tensor.rank;
    for (int d = 0; d < rank; ++d) sizes[d] = tensor.sizes[d];
  }
};

// Checks the arguments (count and tags) against a signature, one letter each:
//   t Tensor            T Tensor or None      L Tensor[]           O Tensor?[]
//   i int               I int or None         b bool               B bool or None
//   f float, int, bool  F that or None        s Scalar (any number)  S Scalar or None
//   l int[]             l int[]               M int[] or None      d float[] or None   z str  Z str or None  * anything
// Also checks that all tensors have a rank up to kMaxRank and a known dtype.
Error check_args(const KernelContext& context, const char* signature);

// As above; also gives "dim" of rank `rank`, brought to [0, rank). A rank of 0 counts as 1. -1 when out of range.
[[nodiscard]] constexpr int wrap_dim(std::int64_t dim, int rank) {
  const int count = rank == 0 ? 1 : rank;
  if (dim < -count || dim >= count) return -1;
  return static_cast<int>(dim < 0 ? dim + count : dim);
}
Error get_dim(const KernelContext& context, std::uint32_t arg, int rank, int* dim);

// Bit set of the dimensions in an int[] argument; with `empty_is_all`, None and [] mean all of them.
Error get_dims(const KernelContext& context, std::uint32_t arg, int rank, bool empty_is_all, std::uint32_t* mask);

Error expect_dtype(const KernelContext& context, std::uint32_t arg, ScalarType type);
Error expect_same_dtype(const KernelContext& context, std::uint32_t a, std::uint32_t b);
Error expect_computable(const KernelContext& context, std::uint32_t arg);
Error expect_index_dtype(const KernelContext& context, std::uint32_t arg);  // int64 or int32

// True if no size, dim or scalar can change after load, so that a plan made in prepare stays valid.
[[nodiscard]] bool is_static(const KernelContext& context);

// The shape that the operands broadcast to.
Error broadcast(const KernelContext& context, const Tensor* const* operands, int count, Shape* shape);

[[nodiscard]] bool same_sizes(const Tensor& a, const Tensor& b);
// Same sizes, and elements at the same places in memory.
[[nodiscard]] bool same_layout(const Tensor& a, const Tensor& b);

[[nodiscard]] ScalarType promote(ScalarType a, ScalarType b);

// PyTorch's result type of tensors and numbers: dimensioned tensors come first, then 0-d tensors, then numbers; a lower
// class counts only when its category (bool, integer, float) is higher.
class ResultType {
 public:
  void add(const Tensor& tensor) { merge(tensor.rank == 0 ? kZeroDim : kDimensioned, tensor.dtype); }
  void add(const EValue& number) {
    merge(kNumber, number.tag == Tag::Bool  ? ScalarType::Bool
                   : number.tag == Tag::Int ? ScalarType::Long
                                            : ScalarType::Float);
  }
  [[nodiscard]] ScalarType get() const;

 private:
  enum Priority { kDimensioned, kZeroDim, kNumber, kPriorities };
  void merge(Priority priority, ScalarType type) {
    types_[priority] = present_[priority] ? promote(types_[priority], type) : type;
    present_[priority] = true;
  }
  ScalarType types_[kPriorities] = {};
  bool present_[kPriorities] = {};
};

// Most kernels are a struct with
//   struct State { bool ready; ... };
//   static Error check(KernelContext&, State&);  // tags, dtypes: once
//   static Error plan(KernelContext&, State&);   // shapes: resizes the outputs, fills the state
//   static Error run(KernelContext&, State&);    // computes
// plan runs once, in prepare, when nothing that it reads can change; else each time.
template <typename Op>
Error planned_prepare(KernelContext& context) {
  auto* state = context.allocate_state<typename Op::State>();
  if (state == nullptr) return Error::MemoryAllocationFailed;
  WB_TRY(Op::check(context, *state));
  if (!is_static(context)) return Error::Ok;
  WB_TRY(Op::plan(context, *state));
  state->ready = true;
  return Error::Ok;
}

template <typename Op>
Error planned_execute(KernelContext& context) {
  auto& state = *static_cast<typename Op::State*>(context.state);
  if (!state.ready) WB_TRY(Op::plan(context, state));
  return Op::run(context, state);
}

template <typename Op>
constexpr Kernel planned(const char* name) {
  return {name, planned_prepare<Op>, planned_execute<Op>};
}

}  // namespace wb::kernels::WB_ISA
