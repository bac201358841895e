// sort, argsort and topk along a dimension: a stable merge sort of (value, position) pairs; NaN is the largest.
#include <utility>

#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {
namespace {

template <typename T>
struct Item {
  T value;
  std::int64_t position;
};

template <typename T>
bool less(T a, T b) {
  return a < b || (b != b && a == a);
}

// Stable; `other` holds n items too. Returns where the result stands.
template <typename T, typename Before>
Item<T>* merge_sort(Item<T>* items, Item<T>* other, std::int64_t n, Before before) {
  constexpr std::int64_t kRun = 16;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t end = begin + kRun < n ? begin + kRun : n;
    for (std::int64_t i = begin + 1; i < end; ++i) {
      const Item<T> item = items[i];
      std::int64_t k = i;
      for (; k > begin && before(item.value, items[k - 1].value); --k) items[k] = items[k - 1];
      items[k] = item;
    }
  }
  for (std::int64_t width = kRun; width < n; width *= 2) {
    for (std::int64_t begin = 0; begin < n; begin += 2 * width) {
      const std::int64_t middle = begin + width < n ? begin + width : n;
      const std::int64_t end = begin + 2 * width < n ? begin + 2 * width : n;
      std::int64_t a = begin;
      std::int64_t b = middle;
      for (std::int64_t k = begin; k < end; ++k) {
        const bool right = a == middle || (b < end && before(items[b].value, items[a].value));
        other[k] = right ? items[b++] : items[a++];
      }
    }
    std::swap(items, other);
  }
  return items;
}

struct Request {
  const Tensor* self;
  const Tensor* values;
  const Tensor* indices;
  int dim;
  std::int64_t count;  // results along the dimension
  bool descending;
};

template <typename T>
void sort_all(const Request& r, Lane lane, std::byte* scratch) {
  const Tensor& self = *r.self;
  if (self.numel() == 0 || r.count == 0) return;
  const std::int64_t size = self.rank == 0 ? 1 : self.sizes[r.dim];
  const std::int64_t step = self.rank == 0 ? 1 : self.strides[r.dim];
  const std::int64_t to_value_step = self.rank == 0 ? 1 : r.values->strides[r.dim];
  const std::int64_t to_index_step = self.rank == 0 ? 1 : r.indices->strides[r.dim];
  const LoadFunction load = find_load(self.dtype, lane);
  const StoreFunction store = find_store(self.dtype, lane);
  const auto bytes = static_cast<std::int64_t>(element_size(self.dtype));
  auto* items = reinterpret_cast<Item<T>*>(scratch);
  Item<T>* other = items + size;
  std::int64_t index[kMaxRank] = {};
  std::int64_t from = 0;
  std::int64_t to_value = 0;
  std::int64_t to_index = 0;
  while (true) {
    for (std::int64_t i = 0; i < size; ++i) {
      load(&items[i].value, static_cast<const std::byte*>(self.data) + (from + i * step) * bytes, 1, 1);
      items[i].position = i;
    }
    const Item<T>* sorted = r.descending ? merge_sort(items, other, size, [](T a, T b) { return less(b, a); })
                                         : merge_sort(items, other, size, [](T a, T b) { return less(a, b); });
    for (std::int64_t i = 0; i < r.count; ++i) {
      store(static_cast<std::byte*>(r.values->data) + (to_value + i * to_value_step) * bytes, 1, &sorted[i].value, 1);
      r.indices->mutable_data<std::int64_t>()[to_index + i * to_index_step] = sorted[i].position;
    }
    int d = self.rank - 1;
    for (; d >= 0; --d) {
      if (d == r.dim) continue;
      from += self.strides[d];
      to_value += r.values->strides[d];
      to_index += r.indices->strides[d];
      if (++index[d] < self.sizes[d]) break;
      from -= self.strides[d] * self.sizes[d];
      to_value -= r.values->strides[d] * self.sizes[d];
      to_index -= r.indices->strides[d] * self.sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

Error check(KernelContext& context, std::uint32_t values, std::uint32_t dim_arg) {
  WB_TRY(expect_computable(context, 0));
  WB_TRY(expect_same_dtype(context, 0, values));
  WB_TRY(expect_dtype(context, values + 1, ScalarType::Long));
  const Tensor& self = context.tensor(0);
  int dim = 0;
  WB_TRY(get_dim(context, dim_arg, self.rank, &dim));
  const std::int64_t size = self.rank == 0 ? 1 : self.sizes[dim];
  context.request_scratch(static_cast<std::size_t>(size) * 2 * sizeof(Item<double>));
  return Error::Ok;
}

Error execute(KernelContext& context, Request request) {
  const Tensor& self = *request.self;
  const std::int64_t size = self.rank == 0 ? 1 : self.sizes[request.dim];
  if (static_cast<std::size_t>(size) > context.scratch_size / (2 * sizeof(Item<double>))) {
    return context.fail(Error::OutOfResources, "scratch memory for %lld elements", static_cast<long long>(size));
  }
  switch (natural_lane(self.dtype)) {
    case Lane::F32: sort_all<float>(request, Lane::F32, context.scratch); break;
    case Lane::F64: sort_all<double>(request, Lane::F64, context.scratch); break;
    default: sort_all<std::int64_t>(request, Lane::I64, context.scratch); break;
  }
  return Error::Ok;
}

// sort(self, dim, descending, values, indices); sort.stable has `stable` before dim.
template <bool kStable>
struct Sort {
  static constexpr std::uint32_t kDim = kStable ? 2 : 1;
  static Error prepare(KernelContext& context) {
    WB_TRY(check_args(context, kStable ? "tBibtt" : "tibtt"));
    return check(context, kDim + 2, kDim);
  }
  static Error run(KernelContext& context) {
    const Tensor& self = context.tensor(0);
    int dim = 0;
    WB_TRY(get_dim(context, kDim, self.rank, &dim));
    Tensor& values = context.tensor(kDim + 2);
    Tensor& indices = context.tensor(kDim + 3);
    WB_TRY(context.resize(values, self.shape()));
    WB_TRY(context.resize(indices, self.shape()));
    const std::int64_t size = self.rank == 0 ? 1 : self.sizes[dim];
    return execute(context, {&self, &values, &indices, dim, size, context.arg(kDim + 1).scalar<bool>()});
  }
};

// topk(self, k, dim, largest, sorted, values, indices)
Error topk_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "tiibbtt"));
  return check(context, 5, 2);
}

Error topk_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  int dim = 0;
  WB_TRY(get_dim(context, 2, self.rank, &dim));
  const std::int64_t size = self.rank == 0 ? 1 : self.sizes[dim];
  const auto k = context.arg(1).scalar<std::int64_t>();
  if (k < 0 || k > size) {
    return context.fail(Error::InvalidArgument, "argument 1 (k): %lld of %lld elements", static_cast<long long>(k),
                        static_cast<long long>(size));
  }
  Shape shape;
  shape.assign(self);
  if (self.rank > 0) shape.sizes[dim] = static_cast<std::int32_t>(k);
  Tensor& values = context.tensor(5);
  Tensor& indices = context.tensor(6);
  WB_TRY(context.resize(values, shape.span()));
  WB_TRY(context.resize(indices, shape.span()));
  return execute(context, {&self, &values, &indices, dim, k, context.arg(3).scalar<bool>()});
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(sort_sort, {"aten::sort.values", Sort<false>::prepare, Sort<false>::run},
           {"aten::sort.values_stable", Sort<true>::prepare, Sort<true>::run},
           {"aten::topk.values", topk_prepare, topk_execute})
