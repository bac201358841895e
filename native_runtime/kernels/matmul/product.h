// Products of matrices as tensors: dtypes, layouts and the special shapes, on top of gemm.
#pragma once

#include "kernels/dense.h"
#include "kernels/gemm/gemm.h"

namespace wb::kernels::WB_ISA {

// A matrix (or a batch of them) in a tensor; strides in elements.
struct MatrixView {
  std::int64_t batch = 0, row = 0, col = 0;
};

// c = beta addend + alpha a b, for each batch; the addend is broadcast through zero strides.
struct ProductState : DenseState {
  Lane lane = Lane::F32;
  std::int64_t batches = 1, m = 0, n = 0, k = 0;
  MatrixView a, b, c, addend;
  bool has_addend = false;
  bool flat_rows = false;  // the rows of the output are all its dimensions but the last; `c` is set by the plan
  std::uint8_t a_arg = 0, b_arg = 1, c_arg = 2, addend_arg = 0;
  std::int16_t beta_arg = -1, alpha_arg = -1;
};

// Lane and dtypes of the two factors, the output and the addend.
Error check_product(KernelContext& context, ProductState& state);

// Adds up the scratch memory; sizes and views are set.
void plan_product(KernelContext& context, ProductState& state);

// The addend's strides for a result of `rank` 2 or 3 and sizes (batches, m, n).
Error plan_addend(KernelContext& context, ProductState& state, int rank);

Error run_product(KernelContext& context, ProductState& state);

inline MatrixView matrix_view(const Tensor& tensor) {
  const int first = tensor.rank - 2;
  return {first > 0 ? tensor.strides[0] : 0, tensor.strides[first], tensor.strides[first + 1]};
}

}  // namespace wb::kernels::WB_ISA
