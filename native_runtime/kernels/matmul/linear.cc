// linear: out[..., j] = sum_k input[..., k] weight[j, k] + bias[j].
#include "kernels/matmul/product.h"

namespace wb::kernels::WB_ISA {
namespace {

struct Linear {
  using State = ProductState;
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "ttTt"));
    state.c_arg = 3;
    state.addend_arg = 2;
    state.has_addend = context.arg(2).is_tensor();
    state.flat_rows = true;
    return check_product(context, state);
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& input = context.tensor(0);
    const Tensor& weight = context.tensor(1);
    WB_TRY(expect_rank(context, 1, 2));
    if (input.rank < 1 || !input.is_contiguous()) {
      return context.fail(Error::NotSupported, "argument 0 (input): expected rank 1 or more in contiguous order");
    }
    WB_TRY(expect_size(context, 1, 1, input.size(input.rank - 1)));
    state.k = weight.size(1);
    state.n = weight.size(0);
    state.m = 1;
    state.shape.assign(input);
    for (int d = 0; d + 1 < input.rank; ++d) state.m *= input.size(d);
    state.shape.sizes[input.rank - 1] = weight.sizes[0];
    state.a = {0, state.k, 1};
    state.b = {0, weight.strides[1], weight.strides[0]};
    state.c = {0, state.n, 1};
    if (state.has_addend) {
      WB_TRY(expect_vector(context, 2, state.n));
      state.addend = {0, 0, 1};
    }
    plan_product(context, state);
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    WB_TRY(context.resize(context.tensor(3), state.shape.span()));
    if (context.tensor(3).is_contiguous()) return Error::Ok;
    return context.fail(Error::NotSupported, "argument 3 (out): expected contiguous order");
  }

  static Error run(KernelContext& context, State& state) { return run_product(context, state); }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(matmul_linear, dense<Linear>("aten::linear.out"))
