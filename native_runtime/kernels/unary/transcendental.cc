// Functions that are defined on floating point; integers are brought to float32.
#include <cmath>

#include "kernels/common/math.h"
#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

#define WB_FUNCTOR(Name, expression)     \
  struct Name : Plain {                  \
    using Plain::Plain;                  \
    template <typename T>                \
    T operator()(T x) const {            \
      return static_cast<T>(expression); \
    }                                    \
  }

WB_FUNCTOR(Exp, fast_exp(x));
WB_FUNCTOR(Log, fast_log(x));
WB_FUNCTOR(Tanh, fast_tanh(x));
WB_FUNCTOR(Erf, fast_erf(x));
WB_FUNCTOR(Sigmoid, T{1} / (T{1} + fast_exp(-x)));
WB_FUNCTOR(Silu, x / (T{1} + fast_exp(-x)));
WB_FUNCTOR(Sqrt, std::sqrt(x));
WB_FUNCTOR(Rsqrt, T{1} / std::sqrt(x));
WB_FUNCTOR(Reciprocal, T{1} / x);
WB_FUNCTOR(Exp2, std::exp2(x));
WB_FUNCTOR(Expm1, fast_expm1(x));
WB_FUNCTOR(Log1p, std::log1p(x));
WB_FUNCTOR(Log2, std::log2(x));
WB_FUNCTOR(Log10, std::log10(x));
WB_FUNCTOR(Sin, std::sin(x));
WB_FUNCTOR(Cos, std::cos(x));
WB_FUNCTOR(Tan, std::tan(x));
WB_FUNCTOR(Asin, std::asin(x));
WB_FUNCTOR(Acos, std::acos(x));
WB_FUNCTOR(Atan, std::atan(x));
WB_FUNCTOR(Sinh, std::sinh(x));
WB_FUNCTOR(Cosh, std::cosh(x));
WB_FUNCTOR(Asinh, std::asinh(x));
WB_FUNCTOR(Acosh, std::acosh(x));
WB_FUNCTOR(Atanh, std::atanh(x));
WB_FUNCTOR(Erfc, std::erfc(x));

#undef WB_FUNCTOR

// log(x / (1 - x)), x clamped to [eps, 1 - eps] when eps is given.
struct Logit {
  double low, high;
  template <typename T>
  Logit(const Params& params, T /*lane*/)
      : low(params.f[0] > 0 ? params.f[0] : -1e300), high(params.f[0] > 0 ? 1 - params.f[0] : 1e300) {}
  template <typename T>
  T operator()(T x) const {
    const T y = x < static_cast<T>(low) ? static_cast<T>(low) : x > static_cast<T>(high) ? static_cast<T>(high) : x;
    return fast_log(y / (T{1} - y));
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(unary_transcendental, WB_POINTWISE("aten::exp.out", float_unary<Exp>()),
           WB_POINTWISE("aten::log.out", float_unary<Log>()), WB_POINTWISE("aten::tanh.out", float_unary<Tanh>()),
           WB_POINTWISE("aten::erf.out", float_unary<Erf>()), WB_POINTWISE("aten::sigmoid.out", float_unary<Sigmoid>()),
           WB_POINTWISE("aten::silu.out", float_unary<Silu>()), WB_POINTWISE("aten::sqrt.out", float_unary<Sqrt>()),
           WB_POINTWISE("aten::rsqrt.out", float_unary<Rsqrt>()),
           WB_POINTWISE("aten::reciprocal.out", float_unary<Reciprocal>()),
           WB_POINTWISE("aten::exp2.out", float_unary<Exp2>()), WB_POINTWISE("aten::expm1.out", float_unary<Expm1>()),
           WB_POINTWISE("aten::log1p.out", float_unary<Log1p>()), WB_POINTWISE("aten::log2.out", float_unary<Log2>()),
           WB_POINTWISE("aten::log10.out", float_unary<Log10>()), WB_POINTWISE("aten::sin.out", float_unary<Sin>()),
           WB_POINTWISE("aten::cos.out", float_unary<Cos>()), WB_POINTWISE("aten::tan.out", float_unary<Tan>()),
           WB_POINTWISE("aten::asin.out", float_unary<Asin>()), WB_POINTWISE("aten::acos.out", float_unary<Acos>()),
           WB_POINTWISE("aten::atan.out", float_unary<Atan>()), WB_POINTWISE("aten::sinh.out", float_unary<Sinh>()),
           WB_POINTWISE("aten::cosh.out", float_unary<Cosh>()), WB_POINTWISE("aten::asinh.out", float_unary<Asinh>()),
           WB_POINTWISE("aten::acosh.out", float_unary<Acosh>()), WB_POINTWISE("aten::atanh.out", float_unary<Atanh>()),
           WB_POINTWISE("aten::erfc.out", float_unary<Erfc>()),
           WB_POINTWISE("aten::logit.out", float_unary<Logit>("tl")))
