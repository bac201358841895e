// permute, transpose, t: dimensions in another order.
#include <utility>

#include "kernels/common/view.h"

namespace wb::kernels::WB_ISA {
namespace {

// out[i_0, ..] = self with dimension dims[k] of self at place k.
struct Permute {
  static constexpr const char* signature = "tlt";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    const auto dims = context.arg(1).payload.int_list.get();
    std::uint32_t mask = 0;
    WB_TRY(get_dims(context, 1, self.rank, false, &mask));
    if (dims.size() != self.rank) {
      return context.fail(Error::InvalidArgument, "argument 1 (dims): expected %d entries, found %zu", self.rank,
                          dims.size());
    }
    for (const std::int64_t entry : dims) {
      const int d = wrap_dim(entry, self.rank);
      view->add(self.sizes[d], self.strides[d]);
    }
    return Error::Ok;
  }
};

Error transpose(const Tensor& self, int a, int b, View* view) {
  view->assign(self);
  if (self.rank == 0) return Error::Ok;
  std::swap(view->shape.sizes[a], view->shape.sizes[b]);
  std::swap(view->strides[a], view->strides[b]);
  return Error::Ok;
}

struct Transpose {
  static constexpr const char* signature = "tiit";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    int a = 0;
    int b = 0;
    WB_TRY(get_dim(context, 1, self.rank, &a));
    WB_TRY(get_dim(context, 2, self.rank, &b));
    return transpose(self, a, b, view);
  }
};

struct T {
  static constexpr const char* signature = "tt";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    if (self.rank > 2) {
      return context.fail(Error::InvalidArgument, "argument 0: expected rank 2 or less, found %d", self.rank);
    }
    return transpose(self, 0, self.rank == 2 ? 1 : 0, view);
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(view_permute, view_kernel<Permute>("aten::permute_copy.out"),
           view_kernel<Transpose>("aten::transpose_copy.int_out"), view_kernel<T>("aten::t_copy.out"))
