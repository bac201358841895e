// slice, narrow, select: part of one dimension.
#include "kernels/common/slice.h"

#include "kernels/common/view.h"

namespace wb::kernels::WB_ISA {
namespace {

Error expect_dimension(const KernelContext& context, const Tensor& self) {
  if (self.rank > 0) return Error::Ok;
  return context.fail(Error::InvalidArgument, "argument 0: a 0-d tensor has no dimension to cut");
}

struct SliceView {
  static constexpr const char* signature = "tiIIit";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    WB_TRY(expect_dimension(context, self));
    int dim = 0;
    WB_TRY(get_dim(context, 1, self.rank, &dim));
    Slice slice;
    WB_TRY(get_slice(context, 2, self.sizes[dim], &slice));
    view->assign(self);
    view->shape.sizes[dim] = static_cast<std::int32_t>(slice.length);
    view->offset = slice.start * self.strides[dim];
    view->strides[dim] *= slice.step;
    return Error::Ok;
  }
};

struct Narrow {
  static constexpr const char* signature = "tiiit";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    WB_TRY(expect_dimension(context, self));
    int dim = 0;
    WB_TRY(get_dim(context, 1, self.rank, &dim));
    const std::int64_t size = self.sizes[dim];
    auto start = context.arg(2).scalar<std::int64_t>();
    const auto length = context.arg(3).scalar<std::int64_t>();
    if (start >= -size && start < 0) start += size;
    if (start < 0 || start > size || length < 0 || length > size - start) {
      return context.fail(Error::InvalidArgument, "start %lld and length %lld don't fit size %lld",
                          static_cast<long long>(start), static_cast<long long>(length), static_cast<long long>(size));
    }
    view->assign(self);
    view->shape.sizes[dim] = static_cast<std::int32_t>(length);
    view->offset = start * self.strides[dim];
    return Error::Ok;
  }
};

struct Select {
  static constexpr const char* signature = "tiit";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    WB_TRY(expect_dimension(context, self));
    int dim = 0;
    WB_TRY(get_dim(context, 1, self.rank, &dim));
    std::int64_t index = 0;
    WB_TRY(get_index(context, 2, self.sizes[dim], &index));
    for (int d = 0; d < self.rank; ++d) {
      if (d != dim) view->add(self.sizes[d], self.strides[d]);
    }
    view->offset = index * self.strides[dim];
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(view_slice, view_kernel<SliceView>("aten::slice_copy.Tensor_out"),
           view_kernel<Narrow>("aten::narrow_copy.out"), view_kernel<Select>("aten::select_copy.int_out"))
