// expand: dimensions of size 1 repeated, and new ones in front.
#include "kernels/common/view.h"

namespace wb::kernels::WB_ISA {
namespace {

struct Expand {
  static constexpr const char* signature = "tl*t";
  static Error view(KernelContext& context, const Tensor& self, View* view) {
    const auto sizes = context.arg(1).payload.int_list.get();
    if (sizes.size() < self.rank || sizes.size() > kMaxRank) {
      return context.fail(Error::InvalidArgument, "argument 1 (size): %zu entries for an input of rank %d",
                          sizes.size(), self.rank);
    }
    const int added = static_cast<int>(sizes.size()) - self.rank;
    for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
      const int d = i - added;
      const std::int64_t own = d < 0 ? 1 : self.sizes[d];
      const std::int64_t size = sizes[i] == -1 && d >= 0 ? own : sizes[i];
      if (size < 0 || size > INT32_MAX || (own != 1 && size != own)) {
        return context.fail(Error::InvalidArgument, "argument 1 (size): entry %d: can't expand %lld to %lld", i,
                            static_cast<long long>(own), static_cast<long long>(size));
      }
      view->add(size, own == 1 ? 0 : self.strides[d]);
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(view_expand, view_kernel<Expand>("aten::expand_copy.out"))
