#include "kernels/matmul/product.h"

#include <algorithm>

namespace wb::kernels::WB_ISA {
namespace {

template <typename T>
struct Operands {
  const T* a;
  const T* b;
  const T* addend;  // may be null
  T* c;
  T alpha, beta;
};

// Of integers: wraps.
template <typename T>
T times(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  } else {
    return x * y;
  }
}

// c = beta addend (0 without one): what the products are added to.
template <typename T>
void fill(const ProductState& s, const Operands<T>& o, std::int64_t batch) {
  T* c = o.c + batch * s.c.batch;
  for (std::int64_t i = 0; i < s.m; ++i) {
    T* row = c + i * s.c.row;
    if (o.addend == nullptr) {
      for (std::int64_t j = 0; j < s.n; ++j) row[j * s.c.col] = T{0};
      continue;
    }
    const T* from = o.addend + batch * s.addend.batch + i * s.addend.row;
    for (std::int64_t j = 0; j < s.n; ++j) row[j * s.c.col] = times(o.beta, from[j * s.addend.col]);
  }
}

void integer_product(const ProductState& s, const Operands<std::int64_t>& o, std::int64_t batch) {
  fill(s, o, batch);
  for (std::int64_t i = 0; i < s.m; ++i) {
    std::int64_t* c = o.c + batch * s.c.batch + i * s.c.row;
    for (std::int64_t kk = 0; kk < s.k; ++kk) {
      const std::int64_t x = times(o.a[batch * s.a.batch + i * s.a.row + kk * s.a.col], o.alpha);
      const std::int64_t* b = o.b + batch * s.b.batch + kk * s.b.row;
      for (std::int64_t j = 0; j < s.n; ++j) {
        c[j * s.c.col] = static_cast<std::int64_t>(static_cast<std::uint64_t>(c[j * s.c.col]) +
                                                   static_cast<std::uint64_t>(times(x, b[j * s.b.col])));
      }
    }
  }
}

template <typename T>
void float_product(const ProductState& s, const Operands<T>& o, std::int64_t batch, std::byte* scratch) {
  Gemm<T> product;
  product.m = s.m;
  product.n = s.n;
  product.k = s.k;
  product.a = o.a + batch * s.a.batch;
  product.a_row = s.a.row;
  product.a_col = s.k == 1 ? 1 : s.a.col;
  product.c = o.c + batch * s.c.batch;
  product.c_row = s.c.row;
  product.c_col = s.n == 1 ? 1 : s.c.col;
  product.alpha = o.alpha;
  const bool column_bias = o.addend != nullptr && o.beta == T{1} && s.addend.row == 0 && s.addend.col == 1;
  if (column_bias) {
    product.col_bias = o.addend + batch * s.addend.batch;
  } else if (o.addend != nullptr) {
    fill(s, o, batch);
    product.accumulate = true;
  }
  const T* b = o.b + batch * s.b.batch;
  // One row, and columns of B that are dense: dot products, no packing. One column: the same with the roles changed.
  if (s.m == 1 && product.a_col == 1 && s.b.row == 1) {
    dot_columns(s.n, s.k, product.a, b, s.b.col, o.alpha, product.col_bias, product.c, product.c_col,
                product.accumulate);
    return;
  }
  if (s.n == 1 && s.b.row == 1 && product.a_col == 1 && !column_bias) {
    dot_columns(s.m, s.k, b, product.a, s.a.row, o.alpha, static_cast<const T*>(nullptr), product.c, s.c.row,
                product.accumulate);
    return;
  }
  const StridedMatrix<T> matrix{b, s.b.row, s.n == 1 ? 1 : s.b.col};
  product.b = panels_of(matrix);
  gemm(product, scratch);
}

template <typename T>
Error run_lane(KernelContext& context, const ProductState& s) {
  Scratch scratch(context);
  Operands<T> o{};
  o.a = staged_input<T>(context.tensor(s.a_arg), s.lane, scratch);
  o.b = staged_input<T>(context.tensor(s.b_arg), s.lane, scratch);
  o.alpha = s.alpha_arg < 0 ? T{1} : context.arg(static_cast<std::uint32_t>(s.alpha_arg)).scalar<T>();
  o.beta = s.beta_arg < 0 ? T{1} : context.arg(static_cast<std::uint32_t>(s.beta_arg)).scalar<T>();
  if (s.has_addend && o.beta != T{0}) o.addend = staged_input<T>(context.tensor(s.addend_arg), s.lane, scratch);
  const StagedOutput<T> out(context.tensor(s.c_arg), s.lane, scratch);
  o.c = out.data();
  if (s.m == 0 || s.n == 0) return Error::Ok;
  [[maybe_unused]] auto* packed = scratch.take<std::byte>(0);
  for (std::int64_t batch = 0; batch < s.batches; ++batch) {
    if constexpr (std::is_integral_v<T>) {
      integer_product(s, o, batch);
    } else {
      float_product(s, o, batch, packed);
    }
  }
  out.store();
  return Error::Ok;
}

}  // namespace

Error check_product(KernelContext& context, ProductState& state) {
  WB_TRY(expect_computable(context, state.a_arg));
  const ScalarType type = context.tensor(state.a_arg).dtype;
  if (type == ScalarType::Bool) {
    return context.fail(Error::NotSupported, "argument %u: no product of bool matrices", state.a_arg);
  }
  state.lane = natural_lane(type);
  WB_TRY(expect_same_dtype(context, state.a_arg, state.b_arg));
  WB_TRY(expect_same_dtype(context, state.a_arg, state.c_arg));
  if (state.has_addend) WB_TRY(expect_same_dtype(context, state.a_arg, state.addend_arg));
  return Error::Ok;
}

void plan_product(KernelContext& context, ProductState& state) {
  const Lane lane = state.lane;
  state.scratch = staged_bytes(context.tensor(state.a_arg), lane) + staged_bytes(context.tensor(state.b_arg), lane);
  if (state.has_addend) state.scratch += staged_bytes(context.tensor(state.addend_arg), lane);
  if (!is_identity(context.tensor(state.c_arg).dtype, lane)) {
    state.scratch += round_scratch(static_cast<std::size_t>(state.batches * state.m * state.n) * lane_size(lane));
  }
  if (lane == Lane::F32) state.scratch += gemm_scratch<float>(state.n, state.k);
  if (lane == Lane::F64) state.scratch += gemm_scratch<double>(state.n, state.k);
}

Error plan_addend(KernelContext& context, ProductState& state, int rank) {
  const Tensor& addend = context.tensor(state.addend_arg);
  const std::int64_t sizes[3] = {state.batches, state.m, state.n};
  std::int64_t* const strides[3] = {&state.addend.batch, &state.addend.row, &state.addend.col};
  if (addend.rank > rank) {
    return context.fail(Error::InvalidArgument, "argument %u: rank %d can't be broadcast to rank %d", state.addend_arg,
                        addend.rank, rank);
  }
  for (int d = 0; d < 3; ++d) {
    const int own = d - (3 - addend.rank);
    *strides[d] = 0;
    if (own < 0) continue;
    if (addend.sizes[own] != 1 && addend.sizes[own] != sizes[d]) {
      return context.fail(Error::InvalidArgument, "argument %u: size %d in dimension %d can't be broadcast to %lld",
                          state.addend_arg, addend.sizes[own], own, static_cast<long long>(sizes[d]));
    }
    if (addend.sizes[own] != 1) *strides[d] = addend.strides[own];
  }
  return Error::Ok;
}

Error run_product(KernelContext& context, ProductState& state) {
  // The output's strides follow from its sizes, which are set by now.
  if (!state.flat_rows) state.c = matrix_view(context.tensor(state.c_arg));
  switch (state.lane) {
    case Lane::F64: return run_lane<double>(context, state);
    case Lane::I64: return run_lane<std::int64_t>(context, state);
    default: return run_lane<float>(context, state);
  }
}

extern const KernelTable table_matmul_product;
const KernelTable table_matmul_product = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
