// mm, addmm: out[i, j] = beta self[i, j] + alpha sum_k mat1[i, k] mat2[k, j]; bmm, baddbmm: the same for each batch.
#include "kernels/matmul/product.h"

namespace wb::kernels::WB_ISA {
namespace {

Error plan_factors(KernelContext& context, ProductState& state, int rank) {
  for (const std::uint32_t arg : {state.a_arg, state.b_arg, state.c_arg}) WB_TRY(expect_rank(context, arg, rank));
  const Tensor& a = context.tensor(state.a_arg);
  const Tensor& b = context.tensor(state.b_arg);
  const int row = rank - 2;
  const int col = rank - 1;
  if (rank == 3) WB_TRY(expect_size(context, state.b_arg, 0, a.size(0)));
  WB_TRY(expect_size(context, state.b_arg, row, a.size(col)));
  state.batches = rank == 3 ? a.size(0) : 1;
  state.m = a.size(row);
  state.k = a.size(col);
  state.n = b.size(col);
  state.a = matrix_view(a);
  state.b = matrix_view(b);
  state.shape.assign(a);
  state.shape.sizes[col] = b.sizes[col];
  plan_product(context, state);
  return state.has_addend ? plan_addend(context, state, rank) : Error::Ok;
}

template <int Rank>
struct Mm {
  using State = ProductState;
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "ttt"));
    return check_product(context, state);
  }
  static Error plan(KernelContext& context, State& state) { return plan_factors(context, state, Rank); }
  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(state.c_arg), state.shape.span());
  }
  static Error run(KernelContext& context, State& state) { return run_product(context, state); }
};

template <int Rank>
struct Addmm : Mm<Rank> {
  using State = ProductState;
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tttsst"));
    state.a_arg = 1;
    state.b_arg = 2;
    state.beta_arg = 3;
    state.alpha_arg = 4;
    state.c_arg = 5;
    state.has_addend = true;
    return check_product(context, state);
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(matmul_matrix, dense<Mm<2>>("aten::mm.out"), dense<Addmm<2>>("aten::addmm.out"),
           dense<Mm<3>>("aten::bmm.out"), dense<Addmm<3>>("aten::baddbmm.out"))
