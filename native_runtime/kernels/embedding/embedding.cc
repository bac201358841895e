// embedding: out[i, ...] = weight[indices[i]], rows copied as bytes.
#include <cstring>

#include "kernels/dense.h"

namespace wb::kernels::WB_ISA {
namespace {

struct EmbeddingState : DenseState {
  std::int64_t rows = 0;
  std::size_t row_bytes = 0;
};

template <typename Index>
Error copy_rows(KernelContext& context, const EmbeddingState& state) {
  const auto* from = context.tensor(0).const_data<std::byte>();
  const auto* indices = context.tensor(1).const_data<Index>();
  auto* to = context.tensor(5).mutable_data<std::byte>();
  const std::int64_t count = context.tensor(1).numel();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(indices[i]);
    if (index < 0 || index >= state.rows) {
      return context.fail(Error::InvalidArgument, "argument 1 (indices): %lld is out of range for %lld rows",
                          static_cast<long long>(index), static_cast<long long>(state.rows));
    }
    if (state.row_bytes == 0) continue;
    std::memcpy(to, from + static_cast<std::size_t>(index) * state.row_bytes, state.row_bytes);
    to += state.row_bytes;
  }
  return Error::Ok;
}

struct Embedding {
  using State = EmbeddingState;

  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "ttibbt"));
    WB_TRY(expect_rank(context, 0, 2));
    WB_TRY(expect_index_dtype(context, 1));
    WB_TRY(expect_same_dtype(context, 0, 5));
    return expect_rank(context, 5, context.tensor(1).rank + 1);
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& weight = context.tensor(0);
    const Tensor& indices = context.tensor(1);
    if (!weight.is_contiguous() || !indices.is_contiguous()) {
      return context.fail(Error::NotSupported, "weight and indices: expected contiguous order");
    }
    state.rows = weight.size(0);
    state.row_bytes = static_cast<std::size_t>(weight.size(1)) * element_size(weight.dtype);
    if (indices.rank + 1 > kMaxRank) return context.fail(Error::NotSupported, "argument 1 (indices): rank too high");
    state.shape.assign(indices);
    state.shape.sizes[state.shape.rank++] = weight.sizes[1];
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    WB_TRY(context.resize(context.tensor(5), state.shape.span()));
    if (context.tensor(5).is_contiguous()) return Error::Ok;
    return context.fail(Error::NotSupported, "argument 5 (out): expected contiguous order");
  }

  static Error run(KernelContext& context, State& state) {
    if (context.tensor(1).dtype == ScalarType::Int) return copy_rows<std::int32_t>(context, state);
    return copy_rows<std::int64_t>(context, state);
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(embedding_embedding, dense<Embedding>("aten::embedding.out"))
