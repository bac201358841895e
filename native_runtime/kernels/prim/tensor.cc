// Operators between tensors and the value table: sizes, one element as a number, views without a copy, the stacking of
// a map's results.
#include <cstring>

#include "kernels/common/args.h"
#include "kernels/common/convert.h"
#include "kernels/common/slice.h"

namespace wb::kernels::WB_ISA {
namespace {

Error expect_number_result(KernelContext& context, std::uint32_t arg) {
  const Tag tag = context.arg(arg).tag;
  if (tag == Tag::None || tag == Tag::Int || tag == Tag::Double || tag == Tag::Bool) return Error::Ok;
  return context.fail(Error::InvalidType, "argument %u (result): expected a number, found %s", arg, name_of(tag));
}

// aten::sym_size.int(self, dim) -> result
Error size_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "ti*"));
  WB_TRY(expect_number_result(context, 2));
  int dim = 0;
  return context.is_constant(1) ? get_dim(context, 1, context.tensor(0).rank, &dim) : Error::Ok;
}

Error size_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  int dim = 0;
  WB_TRY(get_dim(context, 1, self.rank, &dim));
  if (self.rank == 0) return context.fail(Error::InvalidArgument, "argument 0: a 0-d tensor has no sizes");
  context.arg(2).set(self.size(dim));
  return Error::Ok;
}

Error stride_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  int dim = 0;
  WB_TRY(get_dim(context, 1, self.rank, &dim));
  if (self.rank == 0) return context.fail(Error::InvalidArgument, "argument 0: a 0-d tensor has no strides");
  context.arg(2).set(self.strides[dim]);
  return Error::Ok;
}

Error numel_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "t*"));
  return expect_number_result(context, 1);
}

Error numel_execute(KernelContext& context) {
  context.arg(1).set(context.tensor(0).numel());
  return Error::Ok;
}

Error item_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "t*"));
  WB_TRY(expect_computable(context, 0));
  return expect_number_result(context, 1);
}

// The first element: float types give a float, bool a bool, others an int.
Error item_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  if (self.numel() < 1) return context.fail(Error::InvalidArgument, "argument 0: it has no element");
  if (is_floating(self.dtype)) {
    double value = 0;
    find_load(self.dtype, Lane::F64)(&value, self.data, 1, 1);
    context.arg(1).set(value);
  } else if (self.dtype == ScalarType::Bool) {
    context.arg(1).set(*self.const_data<bool>());
  } else {
    std::int64_t value = 0;
    find_load(self.dtype, Lane::I64)(&value, self.data, 1, 1);
    context.arg(1).set(value);
  }
  return Error::Ok;
}

// executorch_prim::et_view.default(self, size, out): out has the memory of self under other sizes.
Error view_prepare(KernelContext& context) {
  WB_TRY(check_args(context, "tlt"));
  WB_TRY(expect_same_dtype(context, 0, 2));
  if (!context.tensor(0).is_contiguous() || !context.tensor(2).is_contiguous()) {
    return context.fail(Error::NotSupported, "a view without a copy needs contiguous tensors");
  }
  return Error::Ok;
}

Error view_execute(KernelContext& context) {
  const Tensor& self = context.tensor(0);
  Tensor& out = context.tensor(2);
  const auto sizes = context.arg(1).payload.int_list.get();
  const std::int64_t numel = self.numel();
  if (!self.is_contiguous() || sizes.size() > kMaxRank) {
    return context.fail(Error::InvalidArgument, "argument 0 has no such view");
  }
  Shape shape;
  shape.rank = static_cast<int>(sizes.size());
  std::int64_t known = 1;
  int inferred = -1;
  for (int d = 0; d < shape.rank; ++d) {
    if (sizes[d] == -1 && inferred < 0) {
      inferred = d;
    } else if (sizes[d] < 0 || sizes[d] > INT32_MAX || (known > INT32_MAX && sizes[d] > 1)) {
      known = -1;
      break;
    } else {
      known *= sizes[d];
      shape.sizes[d] = static_cast<std::int32_t>(sizes[d]);
    }
  }
  if (inferred >= 0 && known > 0 && numel % known == 0 && numel / known <= INT32_MAX) {
    shape.sizes[inferred] = static_cast<std::int32_t>(numel / known);
    known = numel;
  }
  if (known != numel) {
    return context.fail(Error::InvalidArgument, "argument 1 (size): the sizes don't hold %lld elements",
                        static_cast<long long>(numel));
  }
  out.data = self.data;
  out.capacity = self.capacity;
  return context.resize(out, shape.span());
}

// executorch_prim::et_copy_index.tensor(to, from, index): to[index] = from; to grows to index + 1 along its first
// dimension.
Error copy_index_prepare(KernelContext& context) {
  WB_TRY(check_args(context, context.count() == 4 ? "tti*" : "tti"));
  WB_TRY(expect_same_dtype(context, 0, 1));
  const Tensor& to = context.tensor(0);
  if (to.rank != context.tensor(1).rank + 1) {
    return context.fail(Error::InvalidArgument, "argument 0: expected rank %d, found %d", context.tensor(1).rank + 1,
                        to.rank);
  }
  if (!to.is_contiguous() || !context.tensor(1).is_contiguous()) {
    return context.fail(Error::NotSupported, "only contiguous tensors are stacked");
  }
  return Error::Ok;
}

Error copy_index_execute(KernelContext& context) {
  Tensor& to = context.tensor(0);
  const Tensor& from = context.tensor(1);
  const auto index = context.arg(2).scalar<std::int64_t>();
  if (index < 0 || index >= INT32_MAX) {
    return context.fail(Error::InvalidArgument, "argument 2 (index): %lld", static_cast<long long>(index));
  }
  Shape shape;
  shape.rank = to.rank;
  for (int d = 0; d < from.rank; ++d) shape.sizes[d + 1] = from.sizes[d];
  shape.sizes[0] = static_cast<std::int32_t>(index + 1);
  if (to.dynamism == ShapeDynamism::Static && index < to.sizes[0]) shape.sizes[0] = to.sizes[0];
  WB_TRY(context.resize(to, shape.span()));
  const std::size_t bytes = from.nbytes();
  if (bytes != 0)
    std::memcpy(static_cast<std::byte*>(to.data) + static_cast<std::size_t>(index) * bytes, from.data, bytes);
  return Error::Ok;
}

// sym_constrain_range: what the program promises was checked at export; here it only has to be well-formed.
Error constrain_prepare(KernelContext& context) {
  if (context.count() >= 1) return Error::Ok;
  return context.fail(Error::InvalidProgram, "expected a number");
}
Error constrain_execute(KernelContext& /*context*/) { return Error::Ok; }

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(prim_tensor, {"aten::sym_size.int", size_prepare, size_execute},
           {"aten::sym_stride.int", size_prepare, stride_execute}, {"aten::sym_numel", numel_prepare, numel_execute},
           {"aten::_local_scalar_dense", item_prepare, item_execute},
           {"executorch_prim::et_view.default", view_prepare, view_execute},
           {"executorch_prim::et_copy_index.tensor", copy_index_prepare, copy_index_execute},
           {"aten::sym_constrain_range_for_size", constrain_prepare, constrain_execute},
           {"aten::sym_constrain_range", constrain_prepare, constrain_execute},
           {"aten::_assert_scalar", constrain_prepare, constrain_execute})
