// Arithmetic on numbers in the value table: symbolic sizes, loop counters. The result is the last argument.
#include <cmath>

#include "kernels/common/args.h"

namespace wb::kernels::WB_ISA {
namespace {

bool is_result(Tag tag) { return tag == Tag::None || tag == Tag::Int || tag == Tag::Double || tag == Tag::Bool; }

// `inputs` numbers, then the place for the result, which must not be a literal that other instructions read.
Error prepare_numbers(KernelContext& context, std::uint32_t inputs) {
  if (context.count() != inputs + 1) {
    return context.fail(Error::InvalidProgram, "expected %u arguments, found %u", inputs + 1, context.count());
  }
  for (std::uint32_t i = 0; i < inputs; ++i) {
    const Tag tag = context.arg(i).tag;
    if (!is_result(tag)) {
      return context.fail(Error::InvalidType, "argument %u: expected a number, found %s", i, name_of(tag));
    }
  }
  if (!is_result(context.arg(inputs).tag)) {
    return context.fail(Error::InvalidType, "argument %u (result): expected a number, found %s", inputs,
                        name_of(context.arg(inputs).tag));
  }
  return Error::Ok;
}

template <std::uint32_t inputs>
Error prepare(KernelContext& context) {
  return prepare_numbers(context, inputs);
}

using Binary = Error (*)(KernelContext& context, const EValue& a, const EValue& b, EValue& out);
using Unary = Error (*)(KernelContext& context, const EValue& a, EValue& out);

template <Binary f>
Error binary(KernelContext& context) {
  return f(context, context.arg(0), context.arg(1), context.arg(2));
}
template <Unary f>
Error unary(KernelContext& context) {
  return f(context, context.arg(0), context.arg(1));
}

bool real(const EValue& a) { return a.tag == Tag::Double; }
double f64(const EValue& a) { return a.scalar<double>(); }
std::int64_t i64(const EValue& a) { return a.scalar<std::int64_t>(); }
std::uint64_t u64(const EValue& a) { return static_cast<std::uint64_t>(a.scalar<std::int64_t>()); }

Error division_by_zero(const KernelContext& context) {
  return context.fail(Error::InvalidArgument, "division by zero");
}

#define WB_NUMBERS(name, real_expression, int_expression)                                 \
  Error name(KernelContext& /*context*/, const EValue& a, const EValue& b, EValue& out) { \
    if (real(a) || real(b)) {                                                             \
      const double x = f64(a);                                                            \
      const double y = f64(b);                                                            \
      out.set(real_expression);                                                           \
    } else {                                                                              \
      const std::int64_t x = i64(a);                                                      \
      const std::int64_t y = i64(b);                                                      \
      out.set(int_expression);                                                            \
    }                                                                                     \
    return Error::Ok;                                                                     \
  }
// Integers wrap instead of overflowing.
std::int64_t wrap(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
WB_NUMBERS(add, x + y, wrap(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y)))
WB_NUMBERS(sub, x - y, wrap(static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)))
WB_NUMBERS(mul, x* y, wrap(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y)))
WB_NUMBERS(eq, x == y, x == y)
WB_NUMBERS(ne, x != y, x != y)
WB_NUMBERS(gt, x > y, x > y)
WB_NUMBERS(lt, x < y, x < y)
WB_NUMBERS(ge, x >= y, x >= y)
WB_NUMBERS(le, x <= y, x <= y)
WB_NUMBERS(maximum, x > y ? x : y, x > y ? x : y)
WB_NUMBERS(minimum, x < y ? x : y, x < y ? x : y)
#undef WB_NUMBERS

Error floordiv(KernelContext& context, const EValue& a, const EValue& b, EValue& out) {
  if (real(a) || real(b)) {
    if (f64(b) == 0) return division_by_zero(context);
    out.set(std::floor(f64(a) / f64(b)));
    return Error::Ok;
  }
  const std::int64_t x = i64(a);
  const std::int64_t y = i64(b);
  if (y == 0) return division_by_zero(context);
  if (y == -1) {
    out.set(wrap(0U - u64(a)));
  } else {
    out.set(x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0));
  }
  return Error::Ok;
}

Error truediv(KernelContext& context, const EValue& a, const EValue& b, EValue& out) {
  if (f64(b) == 0) return division_by_zero(context);
  out.set(f64(a) / f64(b));
  return Error::Ok;
}

// Python's %, with the sign of the divisor.
Error mod(KernelContext& context, const EValue& a, const EValue& b, EValue& out) {
  if (f64(b) == 0) return division_by_zero(context);
  if (real(a) || real(b)) {
    const double r = std::fmod(f64(a), f64(b));
    out.set(r != 0 && (f64(b) < 0) != (r < 0) ? r + f64(b) : r);
    return Error::Ok;
  }
  const std::int64_t y = i64(b);
  const std::int64_t r = y == -1 ? 0 : i64(a) % y;
  out.set(r != 0 && (y < 0) != (r < 0) ? r + y : r);
  return Error::Ok;
}

std::int64_t to_int(double x) { return std::fabs(x) < 9.2e18 ? static_cast<std::int64_t>(x) : 0; }

Error neg(KernelContext& /*context*/, const EValue& a, EValue& out) {
  if (real(a)) {
    out.set(-f64(a));
  } else {
    out.set(wrap(0U - u64(a)));
  }
  return Error::Ok;
}
Error sym_float(KernelContext& /*context*/, const EValue& a, EValue& out) {
  out.set(f64(a));
  return Error::Ok;
}
Error sym_int(KernelContext& /*context*/, const EValue& a, EValue& out) {
  out.set(real(a) ? to_int(f64(a)) : i64(a));
  return Error::Ok;
}
Error ceil(KernelContext& /*context*/, const EValue& a, EValue& out) {
  out.set(real(a) ? to_int(std::ceil(f64(a))) : i64(a));
  return Error::Ok;
}
Error floor(KernelContext& /*context*/, const EValue& a, EValue& out) {
  out.set(real(a) ? to_int(std::floor(f64(a))) : i64(a));
  return Error::Ok;
}
Error round(KernelContext& /*context*/, const EValue& a, EValue& out) {
  out.set(real(a) ? to_int(std::nearbyint(f64(a))) : i64(a));  // ties to even, as Python
  return Error::Ok;
}
Error sym_not(KernelContext& /*context*/, const EValue& a, EValue& out) {
  out.set(f64(a) == 0);
  return Error::Ok;
}
Error sym_sqrt(KernelContext& /*context*/, const EValue& a, EValue& out) {
  out.set(std::sqrt(f64(a)));
  return Error::Ok;
}
Error bool_and(KernelContext& /*context*/, const EValue& a, const EValue& b, EValue& out) {
  if (a.tag == Tag::Bool && b.tag == Tag::Bool) {
    out.set(a.payload.as_bool && b.payload.as_bool);
  } else {
    out.set(i64(a) & i64(b));
  }
  return Error::Ok;
}
Error bool_or(KernelContext& /*context*/, const EValue& a, const EValue& b, EValue& out) {
  if (a.tag == Tag::Bool && b.tag == Tag::Bool) {
    out.set(a.payload.as_bool || b.payload.as_bool);
  } else {
    out.set(i64(a) | i64(b));
  }
  return Error::Ok;
}

// condition ? b : c
Error sym_ite(KernelContext& context) {
  const EValue& chosen = context.arg(context.arg(0).scalar<double>() != 0 ? 1 : 2);
  EValue& out = context.arg(3);
  out.tag = chosen.tag;
  out.payload = chosen.payload;
  return Error::Ok;
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(
    prim_scalar, {"executorch_prim::add.Scalar", prepare<2>, binary<add>},
    {"executorch_prim::sub.Scalar", prepare<2>, binary<sub>}, {"executorch_prim::mul.Scalar", prepare<2>, binary<mul>},
    {"executorch_prim::floordiv.Scalar", prepare<2>, binary<floordiv>},
    {"executorch_prim::truediv.Scalar", prepare<2>, binary<truediv>},
    {"executorch_prim::mod.Scalar", prepare<2>, binary<mod>}, {"executorch_prim::mod.int", prepare<2>, binary<mod>},
    {"executorch_prim::eq.Scalar", prepare<2>, binary<eq>}, {"executorch_prim::ne.Scalar", prepare<2>, binary<ne>},
    {"executorch_prim::gt.Scalar", prepare<2>, binary<gt>}, {"executorch_prim::lt.Scalar", prepare<2>, binary<lt>},
    {"executorch_prim::ge.Scalar", prepare<2>, binary<ge>}, {"executorch_prim::le.Scalar", prepare<2>, binary<le>},
    {"executorch_prim::sym_max.Scalar", prepare<2>, binary<maximum>},
    {"executorch_prim::sym_min.Scalar", prepare<2>, binary<minimum>},
    {"executorch_prim::and.Scalar", prepare<2>, binary<bool_and>},
    {"executorch_prim::or.Scalar", prepare<2>, binary<bool_or>},
    {"executorch_prim::neg.Scalar", prepare<1>, unary<neg>},
    {"executorch_prim::sym_float.Scalar", prepare<1>, unary<sym_float>},
    {"executorch_prim::sym_int.Scalar", prepare<1>, unary<sym_int>},
    {"executorch_prim::ceil.Scalar", prepare<1>, unary<ceil>},
    {"executorch_prim::floor.Scalar", prepare<1>, unary<floor>},
    {"executorch_prim::round.Scalar", prepare<1>, unary<round>},
    {"executorch_prim::trunc.Scalar", prepare<1>, unary<sym_int>},
    {"executorch_prim::sym_not.Scalar", prepare<1>, unary<sym_not>},
    {"executorch_prim::sym_sqrt.Scalar", prepare<1>, unary<sym_sqrt>},
    {"executorch_prim::sym_ite.Scalar", prepare<3>, sym_ite})
