// Copies of a whole tensor, with change of dtype and dim order: clone, copy, to, detach, lift.
#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

struct CloneState {
  bool ready = false;
  CopyPlan copy;
};

Error plan_pair(const Tensor& from, const Tensor& to, CloneState& state) {
  Region region;
  if (same_layout(from, to)) {
    region.add(from.numel(), 1, 1);
  } else {
    region = pair_tensors(from, to);
  }
  plan_convert(region, from.dtype, to.dtype, &state.copy);
  return Error::Ok;
}

Error expect_convertible(const KernelContext& context, std::uint32_t from, std::uint32_t to) {
  const ScalarType a = context.tensor(from).dtype;
  const ScalarType b = context.tensor(to).dtype;
  if (can_convert(a, b)) return Error::Ok;
  return context.fail(Error::InvalidType, "no conversion from %s to %s", name_of(a), name_of(b));
}

template <int Extra>  // arguments between self and out
struct Clone {
  using State = CloneState;
  static Error check(KernelContext& context, State& /*state*/) {
    constexpr const char* kSignatures[] = {"tt", "t*t", "t**t"};
    WB_TRY(check_args(context, kSignatures[Extra]));
    return expect_convertible(context, 0, Extra + 1);
  }
  static Error plan(KernelContext& context, State& state) {
    WB_TRY(context.resize(context.tensor(Extra + 1), context.tensor(0).shape()));
    return plan_pair(context.tensor(0), context.tensor(Extra + 1), state);
  }
  static Error run(KernelContext& context, State& state) {
    run_copy(state.copy, context.tensor(0).data, context.tensor(Extra + 1).data);
    return Error::Ok;
  }
};

// `from` broadcast to the sizes of self, into `to`.
Error plan_broadcast(KernelContext& context, const Tensor& self, const Tensor& from, const Tensor& to,
                     CloneState& state) {
  const Tensor* operands[] = {&self, &from};
  Shape shape;
  WB_TRY(broadcast(context, operands, 2, &shape));
  bool same = shape.rank == self.rank;
  for (int d = 0; same && d < self.rank; ++d) same = shape.sizes[d] == self.sizes[d];
  if (!same) return context.fail(Error::InvalidArgument, "argument 1 (src) can't be broadcast to self");
  if (from.rank == to.rank && same_sizes(from, to)) return plan_pair(from, to, state);
  Region region;
  for (int d = 0; d < to.rank; ++d) {
    const int own = d - (to.rank - from.rank);
    region.add(to.sizes[d], own < 0 || from.sizes[own] == 1 ? 0 : from.strides[own], to.strides[d]);
  }
  plan_convert(region, from.dtype, to.dtype, &state.copy);
  return Error::Ok;
}

// out = src in the shape of self. Arguments: self, src, non_blocking, out.
struct Copy {
  using State = CloneState;
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "tt*t"));
    return expect_convertible(context, 1, 3);
  }
  static Error plan(KernelContext& context, State& state) {
    WB_TRY(context.resize(context.tensor(3), context.tensor(0).shape()));
    return plan_broadcast(context, context.tensor(0), context.tensor(1), context.tensor(3), state);
  }
  static Error run(KernelContext& context, State& state) {
    run_copy(state.copy, context.tensor(1).data, context.tensor(3).data);
    return Error::Ok;
  }
};

// self = src, in place. Arguments: self, src, non_blocking, and perhaps the result, which is self.
struct CopyInPlace {
  using State = CloneState;
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, context.count() == 4 ? "tt*t" : "tt*"));
    if (context.count() == 4 && &context.tensor(3) != &context.tensor(0)) {
      return context.fail(Error::InvalidProgram, "argument 3: the result of an operator in place is argument 0");
    }
    return expect_convertible(context, 1, 0);
  }
  static Error plan(KernelContext& context, State& state) {
    return plan_broadcast(context, context.tensor(0), context.tensor(1), context.tensor(0), state);
  }
  static Error run(KernelContext& context, State& state) {
    run_copy(state.copy, context.tensor(1).data, context.tensor(0).data);
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(copy_clone, planned<Clone<0>>("aten::alias_copy.out"), planned<Clone<0>>("aten::lift_fresh_copy.out"),
           planned<Clone<0>>("aten::detach_copy.out"), planned<Clone<0>>("et_copy::_h2d_copy.out"),
           planned<Clone<0>>("et_copy::_d2h_copy.out"), planned<Clone<1>>("aten::clone.out"),
           planned<Clone<2>>("aten::_to_copy.out"), planned<Clone<2>>("dim_order_ops::_to_dim_order_copy.out"),
           planned<Clone<2>>("dim_order_ops::_clone_dim_order.out"), planned<Copy>("aten::copy.out"),
           planned<CopyInPlace>("aten::copy_"))
