// argmax, argmin, and max and min along one dimension with indices. The first of equal elements wins; NaN wins over
// all.
#include "kernels/common/convert.h"
#include "kernels/reduction/reduce.h"

namespace wb::kernels::WB_ISA {
namespace {

// Along one dimension of `size` and step `stride`, for `n` neighbours at once: values and positions of the best.
using BestFunction = void (*)(const void* data, std::int64_t size, std::int64_t stride, std::int64_t n, void* values,
                              std::int64_t* positions);

template <typename T, bool kMax>
bool better(T x, T best) {
  return kMax ? x > best : x < best;
}

template <typename T, bool kMax>
void best(const void* data, std::int64_t size, std::int64_t stride, std::int64_t n, void* values,
          std::int64_t* positions) {
  const T* p = static_cast<const T*>(data);
  T* v = static_cast<T*>(values);
  for (std::int64_t j = 0; j < n; ++j) v[j] = p[j], positions[j] = 0;
  for (std::int64_t i = 1; i < size; ++i) {
    const T* row = p + i * stride;
    for (std::int64_t j = 0; j < n; ++j) {
      const bool take = better<T, kMax>(row[j], v[j]) || (row[j] != row[j] && v[j] == v[j]);
      v[j] = take ? row[j] : v[j];
      positions[j] = take ? i : positions[j];
    }
  }
}

template <bool kMax>
BestFunction best_of(Lane lane) {
  switch (lane) {
    case Lane::F32: return best<float, kMax>;
    case Lane::F64: return best<double, kMax>;
    default: return best<std::int64_t, kMax>;
  }
}

struct BestState {
  bool ready = false;
  bool flat = false;  // over all elements in logical order
  int dim = 0;
  Lane lane = Lane::F32;
  BestFunction function = nullptr;
  LoadFunction load = nullptr;
  StoreFunction store_value = nullptr;
  StoreFunction store_index = nullptr;
  ReduceLayout to_values;
  ReduceLayout to_indices;
};

struct Block {
  alignas(64) std::byte in[kBlock * 8];
  alignas(64) std::byte values[kBlock * 8];
  std::int64_t positions[kBlock];
};

// Elements of a dimension are brought to the lane in stretches of `kBlock`; the best of each is compared with the best
// so far.
template <bool kMax>
void merge(Lane lane, const Block& block, std::byte* value, std::int64_t* position, std::int64_t begin) {
  const auto take = [&](auto zero) {
    using T = decltype(zero);
    T x;
    T so_far;
    __builtin_memcpy(&x, block.values, sizeof(T));
    __builtin_memcpy(&so_far, value, sizeof(T));
    if (begin == 0 || better<T, kMax>(x, so_far) || (x != x && so_far == so_far)) {
      __builtin_memcpy(value, &x, sizeof(T));
      *position = begin + block.positions[0];
    }
  };
  if (lane == Lane::F32) {
    take(0.0F);
  } else if (lane == Lane::F64) {
    take(0.0);
  } else {
    take(std::int64_t{0});
  }
}

std::int64_t memory_index(const Tensor& tensor, std::int64_t logical) {
  std::int64_t at = 0;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    at += logical % tensor.sizes[d] * tensor.strides[d];
    logical /= tensor.sizes[d];
  }
  return at;
}

template <bool kMax>
void run_one(const BestState& state, const Tensor& self, std::int64_t offset, std::int64_t size, std::int64_t stride,
             std::byte* value, std::int64_t* position, Block& block) {
  const auto element = static_cast<std::int64_t>(element_size(self.dtype));
  const auto* data = static_cast<const std::byte*>(self.data);
  for (std::int64_t begin = 0; begin < size; begin += kBlock) {
    const std::int64_t count = size - begin < kBlock ? size - begin : kBlock;
    if (state.flat && !self.is_contiguous()) {
      for (std::int64_t i = 0; i < count; ++i) {
        state.load(block.in + static_cast<std::size_t>(i) * lane_size(state.lane),
                   data + memory_index(self, begin + i) * element, 1, 1);
      }
    } else {
      state.load(block.in, data + (offset + begin * stride) * element, stride, count);
    }
    state.function(block.in, count, 1, 1, block.values, block.positions);
    merge<kMax>(state.lane, block, value, position, begin);
  }
}

// Walks the kept positions; values and indices may be null.
template <bool kMax>
void run_best(const BestState& state, const Tensor& self, const Tensor* values, const Tensor* indices) {
  const ReduceLayout& layout = state.to_indices;
  if (layout.results == 0) return;
  Block block;
  const std::int64_t size = layout.count;
  const std::int64_t stride = self.rank == 0 || state.flat ? 1 : self.strides[state.dim];
  const int inner = layout.kept - 1;
  const auto element = static_cast<std::int64_t>(element_size(self.dtype));
  const bool columns = !layout.inner_reduced && is_identity(self.dtype, state.lane);
  std::int64_t index[kMaxRank] = {};
  std::int64_t from = 0;
  std::int64_t to_index = 0;
  std::int64_t to_value = 0;
  while (true) {
    for (std::int64_t begin = 0; begin < layout.kept_sizes[inner]; begin += kBlock) {
      const std::int64_t left = layout.kept_sizes[inner] - begin;
      const std::int64_t count = left < kBlock ? left : kBlock;
      alignas(64) std::byte best_values[kBlock * 8];
      std::int64_t positions[kBlock];
      if (columns) {
        const auto* data = static_cast<const std::byte*>(self.data) + (from + begin) * element;
        state.function(data, size, stride, count, best_values, positions);
      } else {
        for (std::int64_t j = 0; j < count; ++j) {
          run_one<kMax>(state, self, from + (begin + j) * layout.kept_from[inner], size, stride,
                        best_values + static_cast<std::size_t>(j) * lane_size(state.lane), &positions[j], block);
        }
      }
      if (indices != nullptr) {
        const auto at =
            (to_index + begin * layout.kept_to[inner]) * static_cast<std::int64_t>(element_size(indices->dtype));
        state.store_index(static_cast<std::byte*>(indices->data) + at, layout.kept_to[inner], positions, count);
      }
      if (values != nullptr) {
        const std::int64_t step = state.to_values.kept_to[inner];
        const auto at = (to_value + begin * step) * static_cast<std::int64_t>(element_size(values->dtype));
        state.store_value(static_cast<std::byte*>(values->data) + at, step, best_values, count);
      }
    }
    int d = inner - 1;
    for (; d >= 0; --d) {
      from += layout.kept_from[d];
      to_index += layout.kept_to[d];
      to_value += state.to_values.kept_to[d];
      if (++index[d] < layout.kept_sizes[d]) break;
      from -= layout.kept_from[d] * layout.kept_sizes[d];
      to_index -= layout.kept_to[d] * layout.kept_sizes[d];
      to_value -= state.to_values.kept_to[d] * layout.kept_sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

template <bool kMax>
Error check_best(KernelContext& context, std::uint32_t values, std::uint32_t indices, BestState& state) {
  WB_TRY(expect_computable(context, 0));
  WB_TRY(expect_computable(context, indices));
  const ScalarType type = context.tensor(0).dtype;
  state.lane = natural_lane(type) == Lane::Bool ? Lane::I64 : natural_lane(type);
  state.function = best_of<kMax>(state.lane);
  state.load = find_load(type, state.lane);
  state.store_index = find_store(context.tensor(indices).dtype, Lane::I64);
  if (values != 0) {
    WB_TRY(expect_same_dtype(context, 0, values));
    state.store_value = find_store(type, state.lane);
  }
  return Error::Ok;
}

Error plan_best(KernelContext& context, bool keepdim, std::uint32_t values, std::uint32_t indices, BestState& state) {
  const Tensor& self = context.tensor(0);
  const std::uint32_t mask = state.flat ? (1U << self.rank) - 1 : self.rank == 0 ? 0 : 1U << state.dim;
  Shape shape;
  reduced_shape(self, mask, keepdim, &shape);
  WB_TRY(context.resize(context.tensor(indices), shape.span()));
  layout_reduction(self, context.tensor(indices), mask, keepdim, &state.to_indices);
  if (values != 0) {
    WB_TRY(context.resize(context.tensor(values), shape.span()));
    layout_reduction(self, context.tensor(values), mask, keepdim, &state.to_values);
    if (state.to_values.kept != state.to_indices.kept) {
      return context.fail(Error::NotSupported, "values and indices have different dim orders");
    }
  }
  if (state.to_indices.count == 0 && state.to_indices.results != 0) {
    return context.fail(Error::InvalidArgument, "argument 0: there is no element to choose from");
  }
  return Error::Ok;
}

// argmax(self, dim?, keepdim, out)
template <bool kMax>
struct Arg {
  using State = BestState;
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tIbt"));
    return check_best<kMax>(context, 0, 3, state);
  }
  static Error plan(KernelContext& context, State& state) {
    state.flat = context.arg(1).is_none();
    if (!state.flat) WB_TRY(get_dim(context, 1, context.tensor(0).rank, &state.dim));
    return plan_best(context, context.arg(2).scalar<bool>(), 0, 3, state);
  }
  static Error run(KernelContext& context, State& state) {
    run_best<kMax>(state, context.tensor(0), nullptr, &context.tensor(3));
    return Error::Ok;
  }
};

// max.dim(self, dim, keepdim, values, indices)
template <bool kMax>
struct Dim {
  using State = BestState;
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tibtt"));
    return check_best<kMax>(context, 3, 4, state);
  }
  static Error plan(KernelContext& context, State& state) {
    WB_TRY(get_dim(context, 1, context.tensor(0).rank, &state.dim));
    return plan_best(context, context.arg(2).scalar<bool>(), 3, 4, state);
  }
  static Error run(KernelContext& context, State& state) {
    run_best<kMax>(state, context.tensor(0), &context.tensor(3), &context.tensor(4));
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(reduction_arg, planned<Arg<true>>("aten::argmax.out"), planned<Arg<false>>("aten::argmin.out"),
           planned<Dim<true>>("aten::max.dim_max"), planned<Dim<false>>("aten::min.dim_min"))
