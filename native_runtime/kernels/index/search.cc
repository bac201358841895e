// bucketize and searchsorted: where a value would stand in sorted boundaries.
#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {
namespace {

// Number of boundaries below the value (right: not above it). NaN stands behind all.
template <typename T>
std::int64_t position(const T* boundaries, std::int64_t n, T value, bool right) {
  std::int64_t low = 0;
  std::int64_t high = n;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const bool before = right ? !(boundaries[middle] > value) : !(boundaries[middle] >= value);
    if (before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Lane common_lane(const Tensor& a, const Tensor& b) {
  ResultType type;
  type.add(a);
  type.add(b);
  const Lane lane = natural_lane(type.get());
  return lane == Lane::Bool ? Lane::I64 : lane;
}

struct Search {
  const Tensor* boundaries;
  const Tensor* values;
  const Tensor* out;
  bool right;
};

// Rows of values are looked up in rows of boundaries (one row: the same for all). Boundaries in `scratch` are in the
// lane's type.
template <typename T>
void run(const Search& s, Lane lane, std::byte* scratch) {
  const std::int64_t n = s.boundaries->sizes[s.boundaries->rank - 1];
  T* sorted = reinterpret_cast<T*>(scratch);
  const std::int64_t rows = n == 0 ? 0 : s.boundaries->numel() / n;
  const std::int64_t total = s.values->numel();
  if (total == 0) return;
  find_load(s.boundaries->dtype, lane)(sorted, s.boundaries->data, 1, rows * n);
  const bool shared = s.boundaries->rank == 1;
  const std::int64_t row = shared ? total : s.values->sizes[s.values->rank - 1];
  const LoadFunction load = find_load(s.values->dtype, lane);
  const StoreFunction store = find_store(s.out->dtype, Lane::I64);
  const auto from_size = static_cast<std::int64_t>(element_size(s.values->dtype));
  const auto to_size = static_cast<std::int64_t>(element_size(s.out->dtype));
  T block[kBlock];
  std::int64_t found[kBlock];
  for (std::int64_t begin = 0; begin < total; begin += row) {
    const T* own = sorted + (shared ? 0 : begin / row * n);
    for (std::int64_t i = 0; i < row; i += kBlock) {
      const std::int64_t count = row - i < kBlock ? row - i : kBlock;
      load(block, static_cast<const std::byte*>(s.values->data) + (begin + i) * from_size, 1, count);
      for (std::int64_t j = 0; j < count; ++j) found[j] = position(own, n, block[j], s.right);
      store(static_cast<std::byte*>(s.out->data) + (begin + i) * to_size, 1, found, count);
    }
  }
}

Error execute(KernelContext& context, const Search& s) {
  const bool layouts = s.boundaries->is_contiguous() &&
                       (s.boundaries->rank == 1 ? true : s.values->is_contiguous() && s.out->is_contiguous());
  if (!layouts || !same_layout(*s.values, *s.out)) {
    return context.fail(Error::NotSupported,
                        "values and result need one dim order, rows of boundaries a contiguous one");
  }
  const Lane lane = common_lane(*s.boundaries, *s.values);
  if (static_cast<std::size_t>(s.boundaries->numel()) > context.scratch_size / 8) {
    return context.fail(Error::OutOfResources, "scratch memory for the boundaries");
  }
  switch (lane) {
    case Lane::F32: run<float>(s, lane, context.scratch); break;
    case Lane::F64: run<double>(s, lane, context.scratch); break;
    default: run<std::int64_t>(s, lane, context.scratch); break;
  }
  return Error::Ok;
}

Error check(KernelContext& context, std::uint32_t boundaries, std::uint32_t values, std::uint32_t out) {
  for (const std::uint32_t arg : {boundaries, values}) WB_TRY(expect_computable(context, arg));
  WB_TRY(expect_index_dtype(context, out));
  if (context.tensor(boundaries).rank < 1) {
    return context.fail(Error::InvalidArgument, "argument %u (boundaries): a 0-d tensor", boundaries);
  }
  context.request_scratch(static_cast<std::size_t>(context.tensor(boundaries).numel()) * 8);
  return Error::Ok;
}

// bucketize(self, boundaries, out_int32, right, out)
Error bucketize_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "ttbbt"));
  if (context.tensor(1).rank != 1) {
    return context.fail(Error::InvalidArgument, "argument 1 (boundaries): expected rank 1, found %d",
                        context.tensor(1).rank);
  }
  return check(context, 1, 0, 4);
}

Error bucketize_execute(KernelContext& context) {
  WB_TRY(context.resize(context.tensor(4), context.tensor(0).shape()));
  return execute(context, {&context.tensor(1), &context.tensor(0), &context.tensor(4), context.arg(3).scalar<bool>()});
}

// searchsorted(sorted_sequence, self, out_int32, right, side?, sorter?, out)
Error searchsorted_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "ttbbZTt"));
  if (!context.arg(5).is_none()) return context.fail(Error::NotSupported, "argument 5 (sorter): expected None");
  return check(context, 0, 1, 6);
}

Error searchsorted_execute(KernelContext& context) {
  const Tensor& boundaries = context.tensor(0);
  const Tensor& values = context.tensor(1);
  bool fits = boundaries.rank == 1 || boundaries.rank == values.rank;
  for (int d = 0; fits && boundaries.rank > 1 && d + 1 < values.rank; ++d) {
    fits = boundaries.sizes[d] == values.sizes[d];
  }
  if (!fits) return context.fail(Error::InvalidArgument, "the rows of boundaries don't match those of the values");
  WB_TRY(context.resize(context.tensor(6), values.shape()));
  const EValue& side = context.arg(4);
  const bool right = context.arg(3).scalar<bool>() || (side.tag == Tag::String && side.string() == "right");
  return execute(context, {&boundaries, &values, &context.tensor(6), right});
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(index_search, {"aten::bucketize.Tensor_out", bucketize_prepare, bucketize_execute},
           {"aten::searchsorted.Tensor_out", searchsorted_prepare, searchsorted_execute})
