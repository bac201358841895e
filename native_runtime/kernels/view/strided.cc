// flip, diagonal, unfold, as_strided.
#include "kernels/common/view.h"

namespace wb::kernels::WB_ISA {
namespace {

struct Flip {
  static constexpr const char* signature = "tlt";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    std::uint32_t mask = 0;
    WB_TRY(get_dims(context, 1, self.rank, false, &mask));
    view->assign(self);
    for (int d = 0; d < self.rank; ++d) {
      if ((mask >> d & 1U) == 0 || self.sizes[d] == 0) continue;
      view->offset += (self.sizes[d] - 1) * self.strides[d];
      view->strides[d] = -self.strides[d];
    }
    return Error::Ok;
  }
};

// Arguments: offset, dim1, dim2. The diagonal becomes the last dimension.
struct Diagonal {
  static constexpr const char* signature = "tiiit";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    int a = 0;
    int b = 0;
    WB_TRY(get_dim(context, 2, self.rank, &a));
    WB_TRY(get_dim(context, 3, self.rank, &b));
    if (a == b) return context.fail(Error::InvalidArgument, "dim1 and dim2 are the same: %d", a);
    const auto offset = context.arg(1).scalar<std::int64_t>();
    const std::int64_t rows = self.sizes[a];
    const std::int64_t columns = self.sizes[b];
    std::int64_t length = 0;
    if (offset >= 0 && offset < columns) {
      length = rows < columns - offset ? rows : columns - offset;
      view->offset = offset * self.strides[b];
    } else if (offset < 0 && offset > -rows) {
      length = rows + offset < columns ? rows + offset : columns;
      view->offset = -offset * self.strides[a];
    }
    for (int d = 0; d < self.rank; ++d) {
      if (d != a && d != b) view->add(self.sizes[d], self.strides[d]);
    }
    view->add(length, self.strides[a] + self.strides[b]);
    return Error::Ok;
  }
};

// Windows of `size` every `step` along a dimension; the window becomes the last dimension.
struct Unfold {
  static constexpr const char* signature = "tiiit";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    int dim = 0;
    WB_TRY(get_dim(context, 1, self.rank, &dim));
    const auto size = context.arg(2).scalar<std::int64_t>();
    const auto step = context.arg(3).scalar<std::int64_t>();
    const std::int64_t own = self.rank == 0 ? 1 : self.sizes[dim];
    const std::int64_t stride = self.rank == 0 ? 1 : self.strides[dim];
    if (size < 0 || size > own || step < 1 || self.rank == kMaxRank) {
      return context.fail(Error::InvalidArgument, "size %lld and step %lld don't fit dimension %d of size %lld",
                          static_cast<long long>(size), static_cast<long long>(step), dim, static_cast<long long>(own));
    }
    view->assign(self);
    if (self.rank > 0) {
      const std::int64_t windows = (own - size) / step + 1;
      view->shape.sizes[dim] = static_cast<std::int32_t>(windows);
      view->strides[dim] = windows > 1 ? stride * step : stride;
    }
    view->add(size, stride);
    return Error::Ok;
  }
};

// Reads the memory of self, whatever its dim order.
struct AsStrided {
  static constexpr const char* signature = "tllIt";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    const auto sizes = context.arg(1).payload.int_list.get();
    const auto strides = context.arg(2).payload.int_list.get();
    const auto offset = context.arg(3).scalar<std::int64_t>();
    if (sizes.size() != strides.size() || sizes.size() > kMaxRank) {
      return context.fail(Error::InvalidArgument, "%zu sizes and %zu strides", sizes.size(), strides.size());
    }
    const std::int64_t limit = self.numel();
    std::int64_t last = offset;
    bool empty = false;
    bool valid = offset >= 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      valid = valid && sizes[d] >= 0 && sizes[d] <= INT32_MAX && strides[d] >= 0 && strides[d] <= INT32_MAX;
      if (!valid) break;
      empty = empty || sizes[d] == 0;
      if (sizes[d] > 1) last += (sizes[d] - 1) * strides[d];
      valid = valid && (last < limit || sizes[d] == 0);
      view->add(sizes[d], strides[d]);
    }
    if (!valid || (!empty && last >= limit)) {
      return context.fail(Error::InvalidArgument, "the view reaches beyond the %lld elements of argument 0",
                          static_cast<long long>(limit));
    }
    view->offset = empty ? 0 : offset;
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(view_strided, view_kernel<Flip>("aten::flip.out"), view_kernel<Diagonal>("aten::diagonal_copy.out"),
           view_kernel<Unfold>("aten::unfold_copy.out"), view_kernel<AsStrided>("aten::as_strided_copy.out"))
