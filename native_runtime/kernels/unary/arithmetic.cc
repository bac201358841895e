// Functions that keep integers: sign, magnitude, rounding, bits, tests.
#include <cmath>

#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

template <typename T>
constexpr bool kFloat = std::is_floating_point_v<T>;

struct Abs : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T x) const {
    if constexpr (kFloat<T>) {
      return std::fabs(x);
    } else {
      return x < 0 ? static_cast<T>(0U - static_cast<std::uint64_t>(x)) : x;
    }
  }
};

struct Neg : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T x) const {
    if constexpr (kFloat<T>) {
      return -x;
    } else {
      return static_cast<T>(0U - static_cast<std::uint64_t>(x));
    }
  }
};

struct Sign : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>((T{0} < x) - (x < T{0}));  // 0 for NaN, as PyTorch
  }
};

struct Relu : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T x) const {
    return x < T{0} ? T{0} : x;  // NaN stays
  }
};

#define WB_ROUNDING(Name, function) \
  struct Name : Plain {             \
    using Plain::Plain;             \
    template <typename T>           \
    T operator()(T x) const {       \
      if constexpr (kFloat<T>) {    \
        return function(x);         \
      } else {                      \
        return x;                   \
      }                             \
    }                               \
  }
WB_ROUNDING(Ceil, std::ceil);
WB_ROUNDING(Floor, std::floor);
WB_ROUNDING(Trunc, std::trunc);
WB_ROUNDING(Round, std::nearbyint);  // ties to even, as PyTorch
WB_ROUNDING(Identity, +);
#undef WB_ROUNDING

// Rounds at a decimal place: ties to even of x * 10^decimals.
struct RoundDecimals {
  double scale;
  bool divide;
  template <typename T>
  RoundDecimals(const Params& params, T /*lane*/)
      : scale(std::pow(10.0, std::fabs(params.f[0]))), divide(params.i[0] < 0) {}
  template <typename T>
  T operator()(T x) const {
    if constexpr (kFloat<T>) {
      const T s = static_cast<T>(scale);
      return divide ? std::nearbyint(x / s) * s : std::nearbyint(x * s) / s;
    } else {
      return x;
    }
  }
};

struct IsNan : Plain {
  using Plain::Plain;
  template <typename T>
  bool operator()(T x) const {
    return x != x;
  }
};

struct IsInf : Plain {
  using Plain::Plain;
  template <typename T>
  bool operator()(T x) const {
    if constexpr (kFloat<T>) {
      return std::fabs(x) == std::numeric_limits<T>::infinity();
    } else {
      return false;
    }
  }
};

struct BitwiseNot : Plain {
  using Plain::Plain;
  std::int64_t operator()(std::int64_t x) const { return ~x; }
};

struct LogicalNot : Plain {
  using Plain::Plain;
  bool operator()(bool x) const { return !x; }
};

constexpr PointwiseOp kBitwiseNot = {
    "t", LaneRule::Integer, OutLane::Same, {nullptr, nullptr, unary_loop<BitwiseNot, std::int64_t, std::int64_t>}};
constexpr PointwiseOp kLogicalNot = {
    "t", LaneRule::Logical, OutLane::Bool, {nullptr, nullptr, nullptr, unary_loop<LogicalNot, bool, bool>}};

// On bool, not is the logical one: -1 and -2 would both read as true.
Error bitwise_not_prepare(KernelContext& context) {
  const bool is_bool =
      context.count() == 2 && context.arg(0).is_tensor() && context.tensor(0).dtype == ScalarType::Bool;
  return pointwise_prepare(context, is_bool ? kLogicalNot : kBitwiseNot);
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(unary_arithmetic, WB_POINTWISE("aten::abs.out", unary<Abs>()), WB_POINTWISE("aten::neg.out", unary<Neg>()),
           WB_POINTWISE("aten::sign.out", unary<Sign>()), WB_POINTWISE("aten::relu.out", unary<Relu>()),
           WB_POINTWISE("aten::ceil.out", unary<Ceil>()), WB_POINTWISE("aten::floor.out", unary<Floor>()),
           WB_POINTWISE("aten::trunc.out", unary<Trunc>()), WB_POINTWISE("aten::round.out", unary<Round>()),
           WB_POINTWISE("aten::round.decimals_out", unary<RoundDecimals>("ts")),
           WB_POINTWISE("aten::_conj_physical.out", unary<Identity>()),
           WB_POINTWISE("aten::isnan.out", unary_predicate<IsNan>()),
           WB_POINTWISE("aten::isinf.out", unary_predicate<IsInf>()),
           {"aten::bitwise_not.out", bitwise_not_prepare, pointwise_execute},
           WB_POINTWISE("aten::logical_not.out", kLogicalNot))
