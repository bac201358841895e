// add, sub, mul, minimum, maximum, pow, fmod, remainder and their overloads with a number.
#include <cmath>

#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

template <typename T>
constexpr bool kFloat = std::is_floating_point_v<T>;

// Integers wrap.
template <typename T>
T wrap_add(T a, T b) {
  if constexpr (kFloat<T>) {
    return a + b;
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
}

template <typename T>
T wrap_mul(T a, T b) {
  if constexpr (kFloat<T>) {
    return a * b;
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
}

// a + alpha b.
template <typename T, int Sign>
struct AddScaled {
  T alpha;
  AddScaled(const Params& params, T /*lane*/) {
    if constexpr (kFloat<T>) {
      alpha = static_cast<T>(Sign * params.f[0]);
    } else {
      alpha = wrap_mul<T>(Sign, params.i[0]);
    }
  }
  T operator()(T a, T b) const { return wrap_add(a, wrap_mul(alpha, b)); }
};

struct Sum : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    return wrap_add(a, b);
  }
};

struct Difference : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kFloat<T>) {
      return a - b;
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
    }
  }
};

template <typename T, int Sign>
void add_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  if (kFloat<T> ? params.f[0] == 1.0 : params.i[0] == 1) {
    if constexpr (Sign == 1) {
      binary_loop<Sum, T, T>(out, in, mask, n, params);
    } else {
      binary_loop<Difference, T, T>(out, in, mask, n, params);
    }
  } else {
    binary_loop<AddScaled<T, Sign>, T, T>(out, in, mask, n, params);
  }
}

template <typename T>
void rsub_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  const void* swapped[2] = {in[1], in[0]};
  add_loop<T, -1>(out, swapped, (mask >> 1 & 1U) | (mask << 1 & 2U), n, params);
}

struct Mul : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    return wrap_mul(a, b);
  }
};

// NaN of either side wins.
struct Maximum : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    const T larger = a > b ? a : b;
    return a != a ? a : larger;
  }
};

struct Minimum : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    const T smaller = a < b ? a : b;
    return a != a ? a : smaller;
  }
};

// Sign of the dividend. Integer division by zero gives 0 where PyTorch raises.
struct Fmod : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kFloat<T>) {
      return std::fmod(a, b);
    } else {
      return b == 0 || b == -1 ? 0 : a % b;
    }
  }
};

// Sign of the divisor.
struct Remainder : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kFloat<T>) {
      const T r = std::fmod(a, b);
      return r != 0 && (b < 0) != (r < 0) ? r + b : r;
    } else {
      if (b == 0 || b == -1) return 0;
      const T r = a % b;
      return r != 0 && (b < 0) != (r < 0) ? r + b : r;
    }
  }
};

// Integers: by squaring; a negative exponent gives 0 except for the bases 1 and -1.
struct Pow : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kFloat<T>) {
      return std::pow(a, b);
    } else {
      if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;
      T result = 1;
      for (std::uint64_t e = static_cast<std::uint64_t>(b); e != 0; e >>= 1) {
        if ((e & 1U) != 0) result = wrap_mul(result, a);
        a = wrap_mul(a, a);
      }
      return result;
    }
  }
};

struct Square : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a) const {
    return a * a;
  }
};

struct Cube : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a) const {
    return a * a * a;
  }
};

struct SquareRoot : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};

struct InverseSquareRoot : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a) const {
    return T{1} / std::sqrt(a);
  }
};

// Common exponents without pow.
template <typename T>
void pow_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  if ((mask & 2U) != 0) {
    const T exponent = *static_cast<const T*>(in[1]);
    if (exponent == T(2)) return unary_loop<Square, T, T>(out, in, mask & 1U, n, params);
    if (exponent == T(3)) return unary_loop<Cube, T, T>(out, in, mask & 1U, n, params);
    if (exponent == T(0.5)) return unary_loop<SquareRoot, T, T>(out, in, mask & 1U, n, params);
    if (exponent == T(-0.5)) return unary_loop<InverseSquareRoot, T, T>(out, in, mask & 1U, n, params);
  }
  binary_loop<Pow, T, T>(out, in, mask, n, params);
}

struct Atan2 : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    return std::atan2(a, b);
  }
};

template <int Sign>
constexpr PointwiseOp add_op(Signature signature) {
  return {signature,
          LaneRule::Promote,
          OutLane::Same,
          {add_loop<float, Sign>, add_loop<double, Sign>, add_loop<std::int64_t, Sign>}};
}

constexpr PointwiseOp rsub_op(Signature signature) {
  return {signature, LaneRule::Promote, OutLane::Same, {rsub_loop<float>, rsub_loop<double>, rsub_loop<std::int64_t>}};
}

constexpr PointwiseOp pow_op(Signature signature) {
  return {signature,
          LaneRule::Promote,
          OutLane::Same,
          {pow_loop<float>, pow_loop<double>, binary_loop<Pow, std::int64_t, std::int64_t>}};
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(binary_arithmetic, WB_POINTWISE("aten::add.out", add_op<1>("tts")),
           WB_POINTWISE("aten::add.Scalar_out", add_op<1>("t#s")), WB_POINTWISE("aten::sub.out", add_op<-1>("tts")),
           WB_POINTWISE("aten::sub.Scalar_out", add_op<-1>("t#s")),
           WB_POINTWISE("aten::rsub.Scalar_out", rsub_op("t#s")), WB_POINTWISE("aten::rsub.Tensor_out", rsub_op("tts")),
           WB_POINTWISE("aten::mul.out", binary<Mul>()), WB_POINTWISE("aten::mul.Scalar_out", binary<Mul>("t#")),
           WB_POINTWISE("aten::maximum.out", binary<Maximum>()), WB_POINTWISE("aten::minimum.out", binary<Minimum>()),
           WB_POINTWISE("aten::max.out", binary<Maximum>()), WB_POINTWISE("aten::min.out", binary<Minimum>()),
           WB_POINTWISE("aten::fmod.Tensor_out", binary<Fmod>()),
           WB_POINTWISE("aten::fmod.Scalar_out", binary<Fmod>("t#")),
           WB_POINTWISE("aten::remainder.Tensor_out", binary<Remainder>()),
           WB_POINTWISE("aten::remainder.Scalar_out", binary<Remainder>("t#")),
           WB_POINTWISE("aten::remainder.Scalar_Tensor_out", binary<Remainder>("#t")),
           WB_POINTWISE("aten::pow.Tensor_Tensor_out", pow_op("tt")),
           WB_POINTWISE("aten::pow.Tensor_Scalar_out", pow_op("t#")),
           WB_POINTWISE("aten::pow.Scalar_out", pow_op("#t")), WB_POINTWISE("aten::atan2.out", float_binary<Atan2>()))
