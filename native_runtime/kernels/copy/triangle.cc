// tril and triu: elements above or below a diagonal become zero.
#include <cstring>

#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

// Arguments: self, diagonal, out.
template <bool kLower>
struct Triangle {
  struct State {
    bool ready = false;
  };
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "tit"));
    return expect_same_dtype(context, 0, 2);
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    const Tensor& self = context.tensor(0);
    if (self.rank < 2) return context.fail(Error::InvalidArgument, "argument 0: expected rank 2 or more");
    return context.resize(context.tensor(2), self.shape());
  }
  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& self = context.tensor(0);
    const Tensor& out = context.tensor(2);
    if (self.numel() == 0) return Error::Ok;
    const std::int64_t rows = self.sizes[self.rank - 2];
    const std::int64_t columns = self.sizes[self.rank - 1];
    auto diagonal = context.arg(1).scalar<std::int64_t>();
    diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
    const auto bytes = static_cast<std::int64_t>(element_size(self.dtype));
    std::memset(out.data, 0, out.nbytes());
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t edge = r + diagonal + (kLower ? 1 : 0);
      edge = edge < 0 ? 0 : edge > columns ? columns : edge;
      const std::int64_t first = kLower ? 0 : edge;
      Region region = pair_tensors(self, out);
      region.sizes[self.rank - 2] = 1;
      region.sizes[self.rank - 1] = kLower ? edge : columns - edge;
      CopyPlan copy;
      plan_copy(region, static_cast<std::size_t>(bytes), &copy);
      run_copy(copy,
               static_cast<const std::byte*>(self.data) +
                   (r * self.strides[self.rank - 2] + first * self.strides[self.rank - 1]) * bytes,
               static_cast<std::byte*>(out.data) +
                   (r * out.strides[self.rank - 2] + first * out.strides[self.rank - 1]) * bytes);
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(copy_triangle, planned<Triangle<true>>("aten::tril.out"), planned<Triangle<false>>("aten::triu.out"))
