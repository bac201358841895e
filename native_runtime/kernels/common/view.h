// Kernels whose output is a strided view of the input, copied: out[i, j, ...] = self[offset + i s0 + j s1 + ...].
#pragma once

#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {

// The view that an operator makes of its argument 0: sizes, and for each the step in the input, in elements.
struct View {
  Shape shape;
  std::int64_t strides[kMaxRank];
  std::int64_t offset = 0;

  void add(std::int64_t size, std::int64_t stride) {
    shape.sizes[shape.rank] = static_cast<std::int32_t>(size);
    strides[shape.rank++] = stride;
  }
  void assign(const Tensor& tensor) {
    shape.assign(tensor);
    for (int d = 0; d < tensor.rank; ++d) strides[d] = tensor.strides[d];
  }
};

using ViewFunction = Error (*)(KernelContext& context, const Tensor& self, View* view);

struct ViewState {
  bool ready = false;
  std::int64_t offset = 0;  // bytes
  CopyPlan copy;
};

Error check_view(KernelContext& context, const char* signature);
Error plan_view(KernelContext& context, ViewState& state, ViewFunction function);
Error run_view(KernelContext& context, ViewState& state);

// `Op` has a `signature` and a function `view`.
template <typename Op>
struct ViewKernel {
  using State = ViewState;
  static Error check(KernelContext& context, State& /*state*/) { return check_view(context, Op::signature); }
  static Error plan(KernelContext& context, State& state) { return plan_view(context, state, Op::view); }
  static Error run(KernelContext& context, State& state) { return run_view(context, state); }
};

template <typename Op>
constexpr Kernel view_kernel(const char* name) {
  return planned<ViewKernel<Op>>(name);
}

}  // namespace wb::kernels::WB_ISA
