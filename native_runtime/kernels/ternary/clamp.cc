// clamp with tensor bounds, either of which may be None.
#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

// NaN of any operand wins; the upper bound wins over the lower.
template <typename T>
T larger(T a, T b) {
  const T r = a > b ? a : b;
  return a != a ? a : r;
}
template <typename T>
T smaller(T a, T b) {
  const T r = a < b ? a : b;
  return a != a ? a : r;
}

struct AtLeast : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T x, T low) const {
    return larger(x, low);
  }
};
struct AtMost : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T x, T high) const {
    return smaller(x, high);
  }
};

template <typename T>
void clamp_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& /*params*/) {
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(in[0]);
  const T* low = static_cast<const T*>(in[1]);
  const T* high = static_cast<const T*>(in[2]);
  const std::int64_t sx = (mask & 1U) != 0 ? 0 : 1;
  const std::int64_t sl = (mask & 2U) != 0 ? 0 : 1;
  const std::int64_t sh = (mask & 4U) != 0 ? 0 : 1;
  for (std::int64_t i = 0; i < n; ++i) o[i] = smaller(larger(x[i * sx], low[i * sl]), high[i * sh]);
}

constexpr PointwiseOp kBoth = {
    "ttt", LaneRule::Promote, OutLane::Same, {clamp_loop<float>, clamp_loop<double>, clamp_loop<std::int64_t>}};

Error prepare(KernelContext& context) {
  WB_TRY(check_args(context, "tTTt"));
  if (context.arg(1).is_none() && context.arg(2).is_none()) {
    return context.fail(Error::InvalidArgument, "arguments 1 and 2: at least one bound is needed");
  }
  if (context.arg(2).is_none()) return pointwise_prepare(context, binary<AtLeast>("tt-"));
  if (context.arg(1).is_none()) return pointwise_prepare(context, binary<AtMost>("t-t"));
  return pointwise_prepare(context, kBoth);
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(ternary_clamp, {"aten::clamp.Tensor_out", prepare, pointwise_execute})
