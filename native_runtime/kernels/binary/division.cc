// Division: true, truncated, floored.
#include <cmath>

#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

struct TrueDiv : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};

// Integers divided by zero give 0 where PyTorch raises; the most negative number by -1 wraps.
struct TruncDiv : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::trunc(a / b);
    } else {
      if (b == 0) return 0;
      if (b == -1) return static_cast<T>(0U - static_cast<std::uint64_t>(a));
      return a / b;
    }
  }
};

// Python's floor division, by way of fmod so that it agrees with remainder.
struct FloorDiv : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == 0) return a / b;
      const T mod = std::fmod(a, b);
      T div = (a - mod) / b;
      if (mod != 0 && (b < 0) != (mod < 0)) div -= T{1};
      if (div == 0) return std::copysign(T{0}, a / b);
      const T floored = std::floor(div);
      return div - floored > T{0.5} ? floored + T{1} : floored;
    } else {
      if (b == 0) return 0;
      if (b == -1) return static_cast<T>(0U - static_cast<std::uint64_t>(a));
      const T quotient = a / b;
      return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    }
  }
};

template <typename T>
void mode_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  if (params.i[0] == 2) {
    binary_loop<FloorDiv, T, T>(out, in, mask, n, params);
  } else if (params.i[0] == 1) {
    binary_loop<TruncDiv, T, T>(out, in, mask, n, params);
  } else if constexpr (std::is_floating_point_v<T>) {
    binary_loop<TrueDiv, T, T>(out, in, mask, n, params);
  }
}

constexpr PointwiseOp mode_op(Signature signature) {
  return {signature, LaneRule::Mode, OutLane::Same, {mode_loop<float>, mode_loop<double>, mode_loop<std::int64_t>}};
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(binary_division, WB_POINTWISE("aten::div.out", float_binary<TrueDiv>()),
           WB_POINTWISE("aten::div.Scalar_out", float_binary<TrueDiv>("t#")),
           WB_POINTWISE("aten::div.out_mode", mode_op("ttm")),
           WB_POINTWISE("aten::div.Scalar_mode_out", mode_op("t#m")),
           WB_POINTWISE("aten::floor_divide.out", binary<FloorDiv>()),
           WB_POINTWISE("aten::floor_divide.Scalar_out", binary<FloorDiv>("t#")))
