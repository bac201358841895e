// nonzero, masked_select, masked_scatter, repeat_interleave: sizes that depend on values.
#include <cstring>

#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"
#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

// Walks logical positions of `shape`; f(place of each operand) in elements. Operands are broadcast.
template <int count, typename F>
void walk(const Shape& shape, const Tensor* const (&operands)[count], F f) {
  if (shape.numel() == 0) return;
  std::int64_t strides[count][kMaxRank];
  for (int k = 0; k < count; ++k) {
    for (int d = 0; d < shape.rank; ++d) {
      const int own = d - (shape.rank - operands[k]->rank);
      strides[k][d] = own < 0 || operands[k]->sizes[own] == 1 ? 0 : operands[k]->strides[own];
    }
  }
  std::int64_t at[kMaxRank] = {};
  std::int64_t place[count] = {};
  while (true) {
    f(place, at);
    int d = shape.rank - 1;
    for (; d >= 0; --d) {
      for (int k = 0; k < count; ++k) place[k] += strides[k][d];
      if (++at[d] < shape.sizes[d]) break;
      for (int k = 0; k < count; ++k) place[k] -= strides[k][d] * shape.sizes[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

bool is_true(const Tensor& tensor, LoadFunction load, std::int64_t at) {
  bool value = false;
  load(&value, static_cast<const std::byte*>(tensor.data) + at * static_cast<std::int64_t>(element_size(tensor.dtype)),
       1, 1);
  return value;
}

Shape shape_of(const Tensor& tensor) {
  Shape shape;
  shape.assign(tensor);
  return shape;
}

// nonzero(self, out): (count, rank) int64
Error nonzero_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "tt"));
  WB_TRY(expect_computable(context, 0));
  return expect_dtype(context, 1, ScalarType::Long);
}

Error nonzero_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  Tensor& out = context.tensor(1);
  const LoadFunction load = find_load(self.dtype, Lane::Bool);
  const Tensor* const operands[1] = {&self};
  std::int64_t count = 0;
  const Shape shape = shape_of(self);
  walk(shape, operands,
       [&](const std::int64_t* place, const std::int64_t*) { count += is_true(self, load, place[0]) ? 1 : 0; });
  if (count > INT32_MAX) return context.fail(Error::OutOfResources, "too many elements");
  const std::int32_t sizes[2] = {static_cast<std::int32_t>(count), self.rank};
  WB_TRY(context.resize(out, sizes));
  std::int64_t row = 0;
  walk(shape, operands, [&](const std::int64_t* place, const std::int64_t* at) {
    if (!is_true(self, load, place[0])) return;
    for (int d = 0; d < self.rank; ++d) {
      out.mutable_data<std::int64_t>()[row * out.strides[0] + d * out.strides[1]] = at[d];
    }
    ++row;
  });
  return Error::Ok;
}

// masked_select(self, mask, out)
Error select_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "ttt"));
  WB_TRY(expect_computable(context, 1));
  return expect_same_dtype(context, 0, 2);
}

Error select_execute(KernelContext& context) {
  const Tensor* const operands[2] = {&context.tensor(0), &context.tensor(1)};
  Tensor& out = context.tensor(2);
  Shape shape;
  WB_TRY(broadcast(context, operands, 2, &shape));
  const LoadFunction load = find_load(operands[1]->dtype, Lane::Bool);
  std::int64_t count = 0;
  walk(shape, operands,
       [&](const std::int64_t* place, const std::int64_t*) { count += is_true(*operands[1], load, place[1]) ? 1 : 0; });
  if (count > INT32_MAX) return context.fail(Error::OutOfResources, "too many elements");
  const std::int32_t sizes[1] = {static_cast<std::int32_t>(count)};
  WB_TRY(context.resize(out, sizes));
  const std::size_t bytes = element_size(out.dtype);
  auto* to = static_cast<std::byte*>(out.data);
  walk(shape, operands, [&](const std::int64_t* place, const std::int64_t*) {
    if (!is_true(*operands[1], load, place[1])) return;
    std::memcpy(to, static_cast<const std::byte*>(operands[0]->data) + place[0] * static_cast<std::int64_t>(bytes),
                bytes);
    to += bytes;
  });
  return Error::Ok;
}

// masked_scatter(self, mask, source, out)
Error scatter_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "tttt"));
  WB_TRY(expect_computable(context, 1));
  WB_TRY(expect_same_dtype(context, 0, 2));
  return expect_same_dtype(context, 0, 3);
}

Error scatter_execute(KernelContext& context) {
  const Tensor& source = context.tensor(2);
  Tensor& out = context.tensor(3);
  const Tensor* const inputs[2] = {&context.tensor(0), &context.tensor(1)};
  Shape shape;
  WB_TRY(broadcast(context, inputs, 2, &shape));
  WB_TRY(context.resize(out, shape.span()));
  if (!source.is_contiguous()) return context.fail(Error::NotSupported, "argument 2 (source): expected contiguous");
  const Tensor* const operands[3] = {inputs[0], inputs[1], &out};
  const LoadFunction load = find_load(inputs[1]->dtype, Lane::Bool);
  const auto bytes = static_cast<std::int64_t>(element_size(out.dtype));
  std::int64_t taken = 0;
  bool enough = true;
  walk(shape, operands, [&](const std::int64_t* place, const std::int64_t*) {
    const auto* from = static_cast<const std::byte*>(inputs[0]->data) + place[0] * bytes;
    if (is_true(*inputs[1], load, place[1])) {
      enough = enough && taken < source.numel();
      if (enough) from = static_cast<const std::byte*>(source.data) + taken++ * bytes;
    }
    std::memcpy(static_cast<std::byte*>(out.data) + place[2] * bytes, from, static_cast<std::size_t>(bytes));
  });
  if (enough) return Error::Ok;
  return context.fail(Error::InvalidArgument, "argument 2 (source): fewer elements than the mask selects");
}

// repeat_interleave.Tensor(repeats, output_size?, out): i, repeats[i] times.
Error interleave_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "tIt"));
  WB_TRY(expect_index_dtype(context, 0));
  WB_TRY(expect_index_dtype(context, 2));
  if (context.tensor(0).rank == 1) return Error::Ok;
  return context.fail(Error::InvalidArgument, "argument 0 (repeats): expected rank 1");
}

Error interleave_execute(KernelContext& context) {
  const Tensor& repeats = context.tensor(0);
  Tensor& out = context.tensor(2);
  const auto at = [&](std::int64_t i) -> std::int64_t {
    return repeats.dtype == ScalarType::Long ? repeats.const_data<std::int64_t>()[i]
                                             : repeats.const_data<std::int32_t>()[i];
  };
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < repeats.numel(); ++i) {
    if (at(i) < 0 || at(i) > INT32_MAX || total > INT32_MAX) {
      return context.fail(Error::InvalidArgument, "argument 0 (repeats): %lld", static_cast<long long>(at(i)));
    }
    total += at(i);
  }
  if (total > INT32_MAX) return context.fail(Error::OutOfResources, "too many elements");
  const std::int32_t sizes[1] = {static_cast<std::int32_t>(total)};
  WB_TRY(context.resize(out, sizes));
  std::int64_t k = 0;
  for (std::int64_t i = 0; i < repeats.numel(); ++i) {
    for (std::int64_t r = at(i); r > 0; --r, ++k) {
      if (out.dtype == ScalarType::Long) {
        out.mutable_data<std::int64_t>()[k] = i;
      } else {
        out.mutable_data<std::int32_t>()[k] = static_cast<std::int32_t>(i);
      }
    }
  }
  return Error::Ok;
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(index_masked, {"aten::nonzero.out", nonzero_prepare, nonzero_execute},
           {"aten::masked_select.out", select_prepare, select_execute},
           {"aten::masked_scatter.out", scatter_prepare, scatter_execute},
           {"aten::repeat_interleave.Tensor_out", interleave_prepare, interleave_execute})
