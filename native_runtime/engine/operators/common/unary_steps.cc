#include "engine/operators/common/math.h"
#include "engine/operators/common/power.h"
#include "engine/operators/common/step_loops.h"
#include "engine/operators/common/trigonometry.h"

namespace wb::engine::WB_ISA {
namespace {

#define WB_UNARY(Name, expression)                                                  \
  struct Name : Plain {                                                             \
    using Plain::Plain;                                                             \
    [[gnu::always_inline]] Floats operator()(Floats x) const { return expression; } \
  };

const float kOne = 1.0F;

[[gnu::always_inline]] inline Floats truth(Ints mask) { return mask ? splat(1.0F) : Floats{}; }

WB_UNARY(Identity, x)
WB_UNARY(Abs, abs(x))
WB_UNARY(Neg, -x)
WB_UNARY(Ceil, ceil(x))
WB_UNARY(Floor, floor(x))
WB_UNARY(Round, round_even(x))
WB_UNARY(Trunc, trunc(x))
WB_UNARY(Sign, truth(x > 0.0F) - truth(x < 0.0F))
WB_UNARY(Square, x* x)
WB_UNARY(Sqrt, sqrt(x))
WB_UNARY(Rsqrt, math::rsqrt(x))
WB_UNARY(Reciprocal, kOne / x)
WB_UNARY(Exp, math::exp(x))
WB_UNARY(Expm1, math::expm1(x))
WB_UNARY(Log, math::log(x))
WB_UNARY(Log1p, math::log1p(x))
WB_UNARY(Sin, math::sin(x))
WB_UNARY(Cos, math::cos(x))
WB_UNARY(Tan, math::tan(x))
WB_UNARY(Asin, math::asin(x))
WB_UNARY(Acos, math::acos(x))
WB_UNARY(Atan, math::atan(x))
WB_UNARY(Sinh, math::sinh(x))
WB_UNARY(Cosh, math::cosh(x))
WB_UNARY(Tanh, math::tanh(x))
WB_UNARY(Erf, math::erf(x))
WB_UNARY(Sigmoid, math::sigmoid(x))
WB_UNARY(Silu, math::silu(x))
WB_UNARY(HardSigmoid, at_most(at_least(x + 3.0F, 0.0F), 6.0F) / 6.0F)
WB_UNARY(HardSwish, x* at_most(at_least(x + 3.0F, 0.0F), 6.0F) / 6.0F)
WB_UNARY(Gelu, math::gelu(x))
WB_UNARY(GeluTanh, math::gelu_tanh(x))
WB_UNARY(Mish, math::mish(x))
WB_UNARY(LogicalNot, truth(x == 0.0F))
WB_UNARY(IsNan, truth(x != x))
#undef WB_UNARY

#define WB_UNARY_OF(Name, expression)                                               \
  struct Name {                                                                     \
    float a, b;                                                                     \
    Name(float a_, float b_) : a(a_), b(b_) {}                                      \
    [[gnu::always_inline]] Floats operator()(Floats x) const { return expression; } \
  };

WB_UNARY_OF(Softplus, x* a > b ? x : math::log1p(math::exp(x * a)) / a)
WB_UNARY_OF(Elu, x > 0.0F ? x : a * math::expm1(x))
WB_UNARY_OF(LeakyRelu, x >= 0.0F ? x : x * a)
WB_UNARY_OF(Clamp, at_most(at_least(x, a), b))
WB_UNARY_OF(AddScalar, x + a)
WB_UNARY_OF(MulScalar, x* a)
WB_UNARY_OF(ReverseSubScalar, a - x)
WB_UNARY_OF(ReverseDivScalar, a / x)
#undef WB_UNARY_OF

// The exponents that PyTorch computes without a power, too.
struct PowScalar {
  float a;
  PowScalar(float a_, float /*b*/) : a(a_) {}
  [[gnu::always_inline]] Floats operator()(Floats x) const {
    if (a == 2.0F) return x * x;
    if (a == 3.0F) return x * x * x;
    if (a == 0.5F) return sqrt(x);
    if (a == -0.5F) return kOne / sqrt(x);
    if (a == -1.0F) return kOne / x;
    if (a == -2.0F) return kOne / (x * x);
    return math::pow(x, splat(a));
  }
};

}  // namespace

#define WB_STEP(Name) \
  case Fn::Name: return step_loop<1, Name>

StepFunction unary_step(Fn fn) {
  switch (fn) {
    WB_STEP(Identity);
    WB_STEP(Abs);
    WB_STEP(Neg);
    WB_STEP(Ceil);
    WB_STEP(Floor);
    WB_STEP(Round);
    WB_STEP(Trunc);
    WB_STEP(Sign);
    WB_STEP(Square);
    WB_STEP(Sqrt);
    WB_STEP(Rsqrt);
    WB_STEP(Reciprocal);
    WB_STEP(Exp);
    WB_STEP(Expm1);
    WB_STEP(Log);
    WB_STEP(Log1p);
    WB_STEP(Sin);
    WB_STEP(Cos);
    WB_STEP(Tan);
    WB_STEP(Asin);
    WB_STEP(Acos);
    WB_STEP(Atan);
    WB_STEP(Sinh);
    WB_STEP(Cosh);
    WB_STEP(Tanh);
    WB_STEP(Erf);
    WB_STEP(Sigmoid);
    WB_STEP(Silu);
    WB_STEP(HardSigmoid);
    WB_STEP(HardSwish);
    WB_STEP(Gelu);
    WB_STEP(GeluTanh);
    WB_STEP(Mish);
    WB_STEP(Softplus);
    WB_STEP(Elu);
    WB_STEP(LeakyRelu);
    WB_STEP(Clamp);
    WB_STEP(PowScalar);
    WB_STEP(AddScalar);
    WB_STEP(MulScalar);
    WB_STEP(ReverseSubScalar);
    WB_STEP(ReverseDivScalar);
    WB_STEP(LogicalNot);
    WB_STEP(IsNan);
    default: return nullptr;
  }
}

}  // namespace wb::engine::WB_ISA
