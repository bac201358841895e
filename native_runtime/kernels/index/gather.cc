// gather and scatter along a dimension: index gives, for each element, the place along `dim`.
#include <cstring>

#include "kernels/common/scalar.h"
#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

enum class Kind : std::uint8_t { Gather, Set, SetValue, Add };

struct Pair {
  const Tensor* indexed;  // through index: self of gather, the output of scatter
  const Tensor* other;    // in the shape of index: the output of gather, src of scatter; null for a value
};

std::int64_t index_at(const Tensor& index, std::int64_t at) {
  return index.dtype == ScalarType::Long ? index.const_data<std::int64_t>()[at] : index.const_data<std::int32_t>()[at];
}

// Calls f(place in indexed, place in other) for each element of index, in logical order.
template <typename F>
Error walk(const KernelContext& context, const Tensor& index, const Pair& pair, int dim, F f) {
  const std::int64_t n = index.numel();
  if (n == 0) return Error::Ok;
  const int rank = index.rank;
  const std::int64_t size = rank == 0 ? 1 : pair.indexed->sizes[dim];
  const std::int64_t stride = rank == 0 ? 0 : pair.indexed->strides[dim];
  std::int64_t at[kMaxRank] = {};
  std::int64_t place_index = 0;
  std::int64_t place_indexed = 0;
  std::int64_t place_other = 0;
  while (true) {
    std::int64_t value = index_at(index, place_index);
    if (value < -size || value >= size) {
      return context.fail(Error::InvalidArgument, "index %lld is out of range for dimension %d of size %lld",
                          static_cast<long long>(value), dim, static_cast<long long>(size));
    }
    if (value < 0) value += size;
    f(place_indexed + value * stride, place_other);
    int d = rank - 1;
    for (; d >= 0; --d) {
      const std::int64_t step = d == dim ? 0 : pair.indexed->strides[d];
      const std::int64_t other = pair.other == nullptr ? 0 : pair.other->strides[d];
      place_index += index.strides[d];
      place_indexed += step;
      place_other += other;
      if (++at[d] < index.sizes[d]) break;
      place_index -= index.strides[d] * index.sizes[d];
      place_indexed -= step * index.sizes[d];
      place_other -= other * index.sizes[d];
      at[d] = 0;
    }
    if (d < 0) return Error::Ok;
  }
}

template <typename F>
Error for_element(std::size_t size, F f) {
  switch (size) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

// The index may be smaller than the others in every dimension (but `dim`, for the indexed one).
Error check_fit(const KernelContext& context, const Tensor& index, const Pair& pair, int dim) {
  bool fits = index.rank == pair.indexed->rank && (pair.other == nullptr || pair.other->rank == index.rank);
  for (int d = 0; fits && d < index.rank; ++d) {
    fits = (d == dim || index.sizes[d] <= pair.indexed->sizes[d]) &&
           (pair.other == nullptr || index.sizes[d] <= pair.other->sizes[d]);
  }
  if (fits || index.numel() == 0) return Error::Ok;
  return context.fail(Error::InvalidArgument, "the index does not fit the sizes of the other tensors");
}

// gather(self, dim, index, sparse_grad, out)
Error gather_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "tit*t"));
  WB_TRY(expect_index_dtype(context, 2));
  WB_TRY(expect_same_dtype(context, 0, 4));
  return expect_computable(context, 0);
}

Error gather_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  const Tensor& index = context.tensor(2);
  Tensor& out = context.tensor(4);
  int dim = 0;
  WB_TRY(get_dim(context, 1, self.rank, &dim));
  WB_TRY(context.resize(out, index.shape()));
  const Pair pair = {&self, &out};
  WB_TRY(check_fit(context, index, pair, dim));
  return for_element(element_size(self.dtype), [&](auto zero) {
    using T = decltype(zero);
    const T* from = self.const_data<T>();
    T* to = out.mutable_data<T>();
    return walk(context, index, pair, dim, [&](std::int64_t a, std::int64_t b) { to[b] = from[a]; });
  });
}

// scatter(self, dim, index, src | value, out)
template <Kind kind>
Error scatter_prepare(KernelContext& context) {
  WB_TRY(check_args(context, kind == Kind::SetValue ? "titst" : "tittt"));
  WB_TRY(expect_index_dtype(context, 2));
  WB_TRY(expect_same_dtype(context, 0, 4));
  if (kind != Kind::SetValue) WB_TRY(expect_same_dtype(context, 0, 3));
  return expect_computable(context, 0);
}

template <typename T>
void add_element(T* to, const T* from) {
  if constexpr (std::is_same_v<T, bool>) {
    *to = *to || *from;
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    *to = static_cast<T>(static_cast<float>(*to) + static_cast<float>(*from));
  } else if constexpr (std::is_integral_v<T>) {
    *to = static_cast<T>(static_cast<std::uint64_t>(*to) + static_cast<std::uint64_t>(*from));
  } else {
    *to += *from;
  }
}

template <typename T>
Error scatter_add(KernelContext& context, const Tensor& index, const Pair& pair, int dim) {
  T* to = pair.indexed->mutable_data<T>();
  const T* from = pair.other->const_data<T>();
  return walk(context, index, pair, dim, [&](std::int64_t a, std::int64_t b) { add_element(to + a, from + b); });
}

Error scatter_add(KernelContext& context, const Tensor& index, const Pair& pair, int dim) {
  switch (pair.indexed->dtype) {
    case ScalarType::Byte: return scatter_add<std::uint8_t>(context, index, pair, dim);
    case ScalarType::Char: return scatter_add<std::int8_t>(context, index, pair, dim);
    case ScalarType::Short:
    case ScalarType::UInt16: return scatter_add<std::int16_t>(context, index, pair, dim);
    case ScalarType::Int:
    case ScalarType::UInt32: return scatter_add<std::int32_t>(context, index, pair, dim);
    case ScalarType::Half: return scatter_add<Half>(context, index, pair, dim);
    case ScalarType::BFloat16: return scatter_add<BFloat16>(context, index, pair, dim);
    case ScalarType::Float: return scatter_add<float>(context, index, pair, dim);
    case ScalarType::Double: return scatter_add<double>(context, index, pair, dim);
    case ScalarType::Bool: return scatter_add<bool>(context, index, pair, dim);
    default: return scatter_add<std::int64_t>(context, index, pair, dim);
  }
}

template <Kind kind>
Error scatter_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  const Tensor& index = context.tensor(2);
  Tensor& out = context.tensor(4);
  int dim = 0;
  WB_TRY(get_dim(context, 1, self.rank, &dim));
  WB_TRY(context.resize(out, self.shape()));
  const Pair pair = {&out, kind == Kind::SetValue ? nullptr : &context.tensor(3)};
  WB_TRY(check_fit(context, index, pair, dim));
  CopyPlan copy;
  plan_copy(pair_tensors(self, out), element_size(self.dtype), &copy);
  run_copy(copy, self.data, out.data);
  if constexpr (kind == Kind::Add) return scatter_add(context, index, pair, dim);
  alignas(8) std::byte bits[8];
  if constexpr (kind == Kind::SetValue) number_bits(context.arg(3), out.dtype, bits);
  return for_element(element_size(self.dtype), [&](auto zero) {
    using T = decltype(zero);
    T value = {};
    if constexpr (kind == Kind::SetValue) std::memcpy(&value, bits, sizeof(T));
    const T* from = kind == Kind::SetValue ? nullptr : context.tensor(3).template const_data<T>();
    T* to = out.mutable_data<T>();
    return walk(context, index, pair, dim,
                [&](std::int64_t a, std::int64_t b) { to[a] = kind == Kind::SetValue ? value : from[b]; });
  });
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(index_gather, {"aten::gather.out", gather_prepare, gather_execute},
           {"aten::scatter.src_out", scatter_prepare<Kind::Set>, scatter_execute<Kind::Set>},
           {"aten::scatter.value_out", scatter_prepare<Kind::SetValue>, scatter_execute<Kind::SetValue>},
           {"aten::scatter_add.out", scatter_prepare<Kind::Add>, scatter_execute<Kind::Add>})
