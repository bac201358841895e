// What all view kernels share.
#include "kernels/common/view.h"

namespace wb::kernels::WB_ISA {

Error check_view(KernelContext& context, const char* signature) {
  WB_TRY(check_args(context, signature));
  const std::uint32_t out = context.count() - 1;
  WB_TRY(expect_same_dtype(context, 0, out));
  return Error::Ok;
}

Error plan_view(KernelContext& context, ViewState& state, ViewFunction function) {
  const Tensor& self = context.tensor(0);
  Tensor& out = context.tensor(context.count() - 1);
  View view;
  WB_TRY(function(context, self, &view));
  WB_TRY(context.resize(out, view.shape.span()));
  Region region;
  for (int d = 0; d < view.shape.rank; ++d) region.add(view.shape.sizes[d], view.strides[d], out.strides[d]);
  plan_copy(region, element_size(self.dtype), &state.copy);
  state.offset = view.offset * static_cast<std::int64_t>(element_size(self.dtype));
  return Error::Ok;
}

Error run_view(KernelContext& context, ViewState& state) {
  const Tensor& self = context.tensor(0);
  run_copy(state.copy, static_cast<const std::byte*>(self.data) + state.offset,
           context.tensor(context.count() - 1).data);
  return Error::Ok;
}

extern const KernelTable table_common_view;
const KernelTable table_common_view = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
