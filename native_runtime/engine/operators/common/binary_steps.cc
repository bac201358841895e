#include <cmath>

#include "engine/operators/common/lanes.h"
#include "engine/operators/common/power.h"
#include "engine/operators/common/step_loops.h"
#include "engine/operators/common/trigonometry.h"

namespace wb::engine::WB_ISA {
namespace {

[[gnu::always_inline]] inline Floats truth(Ints mask) { return mask ? splat(1.0F) : Floats{}; }

template <typename F>
[[gnu::always_inline]] inline Floats each(Floats x, Floats y, F&& f) {
  for (int i = 0; i < kFloats; ++i) x[i] = f(x[i], y[i]);
  return x;
}

// The sign of the divisor, as Python's.
float remainder_of(float x, float y) {
  const float r = fmodf(x, y);
  return r != 0.0F && (r < 0.0F) != (y < 0.0F) ? r + y : r;
}

#define WB_BINARY(Name, expression)                                                           \
  struct Name : Plain {                                                                       \
    using Plain::Plain;                                                                       \
    [[gnu::always_inline]] Floats operator()(Floats x, Floats y) const { return expression; } \
  };

WB_BINARY(Add, x + y)
WB_BINARY(Sub, x - y)
WB_BINARY(Mul, x* y)
WB_BINARY(Div, x / y)
// NaN where either is.
WB_BINARY(Maximum, x != x ? x : (x > y ? x : y))
WB_BINARY(Minimum, x != x ? x : (x < y ? x : y))
WB_BINARY(Pow, math::pow(x, y))
WB_BINARY(SquaredDifference, (x - y) * (x - y))
WB_BINARY(Prelu, x > 0.0F ? x : x * y)
WB_BINARY(Copysign, copysign(x, y))
WB_BINARY(Atan2, math::atan2(x, y))
WB_BINARY(Fmod, each(x, y, fmodf))
WB_BINARY(Remainder, each(x, y, remainder_of))
WB_BINARY(Eq, truth(x == y))
WB_BINARY(Ne, truth(x != y))
WB_BINARY(Lt, truth(x < y))
WB_BINARY(Le, truth(x <= y))
WB_BINARY(Gt, truth(x > y))
WB_BINARY(Ge, truth(x >= y))
WB_BINARY(LogicalAnd, truth((x != 0.0F) & (y != 0.0F)))
WB_BINARY(LogicalOr, truth((x != 0.0F) | (y != 0.0F)))
WB_BINARY(LogicalXor, truth((x != 0.0F) ^ (y != 0.0F)))
#undef WB_BINARY

struct AddScaled {
  float a;
  AddScaled(float a_, float /*b*/) : a(a_) {}
  [[gnu::always_inline]] Floats operator()(Floats x, Floats y) const { return x + y * a; }
};

struct Where : Plain {
  using Plain::Plain;
  [[gnu::always_inline]] Floats operator()(Floats x, Floats y, Floats z) const { return x != 0.0F ? y : z; }
};

}  // namespace

#define WB_STEP(Name) \
  case Fn::Name: return step_loop<2, Name>

StepFunction binary_step(Fn fn) {
  switch (fn) {
    WB_STEP(Add);
    WB_STEP(Sub);
    WB_STEP(Mul);
    WB_STEP(Div);
    WB_STEP(Maximum);
    WB_STEP(Minimum);
    WB_STEP(Pow);
    WB_STEP(SquaredDifference);
    WB_STEP(Prelu);
    WB_STEP(Copysign);
    WB_STEP(Atan2);
    WB_STEP(Fmod);
    WB_STEP(Remainder);
    WB_STEP(AddScaled);
    WB_STEP(Eq);
    WB_STEP(Ne);
    WB_STEP(Lt);
    WB_STEP(Le);
    WB_STEP(Gt);
    WB_STEP(Ge);
    WB_STEP(LogicalAnd);
    WB_STEP(LogicalOr);
    WB_STEP(LogicalXor);
    default: return nullptr;
  }
}

StepFunction step_function(Fn fn) {
  switch (arity_of(fn)) {
    case 1: return unary_step(fn);
    case 2: return binary_step(fn);
    default: return step_loop<3, Where>;
  }
}

}  // namespace wb::engine::WB_ISA
