// squeeze and unsqueeze: dimensions of size 1 go or come.
#include "kernels/common/view.h"

namespace wb::kernels::WB_ISA {
namespace {

Error squeeze(const Tensor& self, std::uint32_t mask, View* view) {
  for (int d = 0; d < self.rank; ++d) {
    if ((mask >> d & 1U) == 0 || self.sizes[d] != 1) view->add(self.sizes[d], self.strides[d]);
  }
  return Error::Ok;
}

struct SqueezeAll {
  static constexpr const char* signature = "tt";
  static Error view(KernelContext& /*context*/, const Tensor& self, View* view) { return squeeze(self, ~0U, view); }
};

struct SqueezeDim {
  static constexpr const char* signature = "tit";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    int dim = 0;
    WB_TRY(get_dim(context, 1, self.rank, &dim));
    return squeeze(self, 1U << dim, view);
  }
};

struct SqueezeDims {
  static constexpr const char* signature = "tlt";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    std::uint32_t mask = 0;
    WB_TRY(get_dims(context, 1, self.rank, false, &mask));
    return squeeze(self, mask, view);
  }
};

struct Unsqueeze {
  static constexpr const char* signature = "tit";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    if (self.rank == kMaxRank) return context.fail(Error::InvalidArgument, "argument 0: rank %d", self.rank);
    int dim = 0;
    WB_TRY(get_dim(context, 1, self.rank + 1, &dim));
    for (int d = 0; d <= self.rank; ++d) {
      if (d == dim) view->add(1, 0);
      if (d < self.rank) view->add(self.sizes[d], self.strides[d]);
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(view_squeeze, view_kernel<SqueezeAll>("aten::squeeze_copy.out"),
           view_kernel<SqueezeDim>("aten::squeeze_copy.dim_out"),
           view_kernel<SqueezeDims>("aten::squeeze_copy.dims_out"), view_kernel<Unsqueeze>("aten::unsqueeze_copy.out"))
