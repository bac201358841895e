// index.Tensor, index_put and index_select.
#include <cstring>

#include "kernels/common/slice.h"
#include "kernels/index/offsets.h"

namespace wb::kernels::WB_ISA {
namespace {

// index.Tensor(self, indices, out)
Error index_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "tOt"));
  WB_TRY(expect_same_dtype(context, 0, 2));
  WB_TRY(check_indices(context, 0, 1));
  request_index_scratch(context, 1);
  return Error::Ok;
}

Error index_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  Tensor& out = context.tensor(2);
  Indexing indexing;
  WB_TRY(read_indices(context, self, 1, &indexing));
  WB_TRY(context.resize(out, indexing.result.span()));
  const std::size_t element = element_size(self.dtype);
  plan_indexed_copy(self, out.strides, element, false, &indexing);
  const auto* from = static_cast<const std::byte*>(self.data);
  auto* to = static_cast<std::byte*>(out.data);
  const auto bytes = static_cast<std::int64_t>(element);
  for (std::int64_t i = 0; i < indexing.count; ++i) {
    run_copy(indexing.copy, from + indexing.places[i] * bytes, to + place_in_result(indexing, i) * bytes);
  }
  return Error::Ok;
}

// Steps of `values` seen in the shape of the result.
Error broadcast_values(const KernelContext& context, const Tensor& values, const Shape& result, std::int64_t* strides) {
  for (int d = 0; d < result.rank; ++d) {
    const int own = d - (result.rank - values.rank);
    strides[d] = own < 0 || values.sizes[own] == 1 ? 0 : values.strides[own];
    if (own >= 0 && values.sizes[own] != 1 && values.sizes[own] != result.sizes[d]) {
      return context.fail(Error::InvalidArgument, "the values can't be broadcast to the indexed shape");
    }
  }
  if (values.rank > result.rank) {
    return context.fail(Error::InvalidArgument, "the values have rank %d, the indexed shape %d", values.rank,
                        result.rank);
  }
  return Error::Ok;
}

// to += from over the region of a plan, element by element: repeated indices add up.
void accumulate(const CopyPlan& plan, ScalarType type, const std::byte* from, std::byte* to) {
  const Lane lane = natural_lane(type) == Lane::Bool ? Lane::I64 : natural_lane(type);
  const LoadFunction load = find_load(type, lane);
  const StoreFunction store = find_store(type, lane);
  if (plan.method == CopyPlan::Method::Empty) return;
  std::int64_t index[kMaxRegion] = {};
  while (true) {
    union {
      float f;
      double d;
      std::int64_t i;
    } a = {}, b = {};
    load(&a, to, 1, 1);
    load(&b, from, 1, 1);
    if (lane == Lane::F32) {
      a.f += b.f;
    } else if (lane == Lane::F64) {
      a.d += b.d;
    } else {
      a.i = static_cast<std::int64_t>(static_cast<std::uint64_t>(a.i) + static_cast<std::uint64_t>(b.i));
    }
    store(to, 1, &a, 1);
    int d = plan.rank - 1;
    for (; d >= 0; --d) {
      from += plan.from[d];
      to += plan.to[d];
      if (++index[d] < plan.sizes[d]) break;
      from -= plan.from[d] * plan.sizes[d];
      to -= plan.to[d] * plan.sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

Error put(KernelContext& context, const Tensor& target) {
  const Tensor& values = context.tensor(2);
  Indexing indexing;
  WB_TRY(read_indices(context, target, 1, &indexing));
  std::int64_t strides[kMaxRank];
  WB_TRY(broadcast_values(context, values, indexing.result, strides));
  const std::size_t element = element_size(target.dtype);
  const auto bytes = static_cast<std::int64_t>(element);
  plan_indexed_copy(target, strides, element, true, &indexing);
  const auto* from = static_cast<const std::byte*>(values.data);
  auto* to = static_cast<std::byte*>(target.data);
  const bool add = context.arg(3).scalar<bool>();
  for (std::int64_t i = 0; i < indexing.count; ++i) {
    const std::byte* source = from + place_in_result(indexing, i) * bytes;
    std::byte* place = to + indexing.places[i] * bytes;
    if (add) {
      accumulate(indexing.copy, target.dtype, source, place);
    } else {
      run_copy(indexing.copy, source, place);
    }
  }
  return Error::Ok;
}

// index_put(self, indices, values, accumulate, out)
template <bool kInPlace>
Error put_prepare(KernelContext& context) {
  if (kInPlace) {
    WB_TRY(check_args(context, context.count() == 5 ? "tOtbt" : "tOtb"));
  } else {
    WB_TRY(check_args(context, "tOtbt"));
    WB_TRY(expect_same_dtype(context, 0, 4));
  }
  WB_TRY(expect_same_dtype(context, 0, 2));
  WB_TRY(expect_computable(context, 0));
  WB_TRY(check_indices(context, 0, 1));
  request_index_scratch(context, 1);
  return Error::Ok;
}

Error put_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  Tensor& out = context.tensor(4);
  WB_TRY(context.resize(out, self.shape()));
  CopyPlan copy;
  plan_copy(pair_tensors(self, out), element_size(self.dtype), &copy);
  run_copy(copy, self.data, out.data);
  return put(context, out);
}

Error put_in_place(KernelContext& context) { return put(context, context.tensor(0)); }

// index_select(self, dim, index, out)
Error select_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "titt"));
  WB_TRY(expect_same_dtype(context, 0, 3));
  WB_TRY(expect_index_dtype(context, 2));
  if (context.tensor(2).rank > 1) {
    return context.fail(Error::InvalidArgument, "argument 2 (index): expected rank 1, found %d",
                        context.tensor(2).rank);
  }
  int dim = 0;
  return get_dim(context, 1, context.tensor(0).rank, &dim);
}

Error select_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  const Tensor& index = context.tensor(2);
  Tensor& out = context.tensor(3);
  int dim = 0;
  WB_TRY(get_dim(context, 1, self.rank, &dim));
  const std::int64_t count = index.numel();
  Shape shape;
  shape.assign(self);
  if (self.rank > 0) shape.sizes[dim] = static_cast<std::int32_t>(count);
  WB_TRY(context.resize(out, shape.span()));
  Region region;
  for (int d = 0; d < self.rank; ++d) {
    if (d != dim) region.add(self.sizes[d], self.strides[d], out.strides[d]);
  }
  CopyPlan copy;
  const std::size_t element = element_size(self.dtype);
  plan_copy(region, element, &copy);
  const std::int64_t size = self.rank == 0 ? 1 : self.sizes[dim];
  const auto bytes = static_cast<std::int64_t>(element);
  const std::int64_t from_step = self.rank == 0 ? 0 : self.strides[dim] * bytes;
  const std::int64_t to_step = self.rank == 0 ? 0 : out.strides[dim] * bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t value =
        index.dtype == ScalarType::Long ? index.const_data<std::int64_t>()[i] : index.const_data<std::int32_t>()[i];
    if (value < 0 || value >= size) {
      return context.fail(Error::InvalidArgument, "argument 2 (index): %lld is out of range for size %lld",
                          static_cast<long long>(value), static_cast<long long>(size));
    }
    run_copy(copy, static_cast<const std::byte*>(self.data) + value * from_step,
             static_cast<std::byte*>(out.data) + i * to_step);
  }
  return Error::Ok;
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(index_index, {"aten::index.Tensor_out", index_prepare, index_execute},
           {"aten::index_put.out", put_prepare<false>, put_execute},
           {"aten::index_put_", put_prepare<true>, put_in_place},
           {"aten::index_select.out", select_prepare, select_execute})
