// constant_pad_nd: a border of one value; negative amounts cut.
#include "kernels/common/scalar.h"
#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

struct PadState {
  bool ready = false;
  bool border = false;
  std::int64_t from = 0;  // bytes
  std::int64_t to = 0;    // bytes
  CopyPlan copy;
};

// Arguments: self, pad (from the last dimension: before, after, ...), value, out.
struct ConstantPad {
  using State = PadState;
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "tlst"));
    WB_TRY(expect_same_dtype(context, 0, 3));
    return expect_computable(context, 0);
  }
  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    Tensor& out = context.tensor(3);
    const auto pad = context.arg(1).payload.int_list.get();
    if (pad.size() % 2 != 0 || pad.size() / 2 > self.rank) {
      return context.fail(Error::InvalidArgument, "argument 1 (pad): %zu entries for rank %d", pad.size(), self.rank);
    }
    Shape shape;
    shape.assign(self);
    std::int64_t before[kMaxRank] = {};
    state.border = false;
    for (int d = 0; d < self.rank; ++d) {
      const auto k = static_cast<std::size_t>(self.rank - 1 - d);
      if (2 * k >= pad.size()) continue;
      before[d] = pad[2 * k];
      const std::int64_t after = pad[2 * k + 1];
      const bool sane = before[d] > INT32_MIN && before[d] < INT32_MAX && after > INT32_MIN && after < INT32_MAX;
      const std::int64_t size = sane ? self.sizes[d] + before[d] + after : -1;
      if (size < 0 || size > INT32_MAX) {
        return context.fail(Error::InvalidArgument, "argument 1 (pad): dimension %d would have size %lld", d,
                            static_cast<long long>(size));
      }
      state.border = state.border || before[d] > 0 || after > 0;
      shape.sizes[d] = static_cast<std::int32_t>(size);
    }
    WB_TRY(context.resize(out, shape.span()));
    Region region;
    const auto element = static_cast<std::int64_t>(element_size(self.dtype));
    state.from = state.to = 0;
    for (int d = 0; d < self.rank; ++d) {
      const std::int64_t cut = before[d] < 0 ? -before[d] : 0;
      const std::int64_t shift = before[d] > 0 ? before[d] : 0;
      const std::int64_t available = self.sizes[d] - cut;
      const std::int64_t room = shape.sizes[d] - shift;
      const std::int64_t length = available < room ? available : room;
      region.add(length < 0 ? 0 : length, self.strides[d], out.strides[d]);
      state.from += cut * self.strides[d] * element;
      state.to += shift * out.strides[d] * element;
    }
    plan_copy(region, element_size(self.dtype), &state.copy);
    return Error::Ok;
  }
  static Error run(KernelContext& context, State& state) {
    const Tensor& out = context.tensor(3);
    if (state.border || state.copy.method == CopyPlan::Method::Empty) fill_number(out, context.arg(2));
    run_copy(state.copy, static_cast<const std::byte*>(context.tensor(0).data) + state.from,
             static_cast<std::byte*>(out.data) + state.to);
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(pad_constant, planned<ConstantPad>("aten::constant_pad_nd.out"))
