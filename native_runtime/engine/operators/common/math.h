// Elementary functions of vectors of float, without branches: both sides are computed and one is picked. The bounds
// are the largest errors that test_math.cc measures against double, in units in the last place of the result (ulp).
// NaN, infinities and results that overflow are as in <cmath>.
#pragma once

#include "engine/operators/common/erf_table.h"
#include "engine/operators/common/lanes.h"

namespace wb::engine::WB_ISA::math {

inline constexpr float kLog2e = 1.44269504F;
inline constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
inline constexpr float kInf = __builtin_huge_valf();

// x = n ln 2 + r with |r| <= ln 2 / 2, for x limited to where exp is neither 0 nor infinite by far.
struct Exponent {
  Floats n, r;
};
[[gnu::always_inline]] inline Exponent split_exponent(Floats x, float low) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const Floats t = at_most(at_least(x, low), 89.0F);
  const Floats n = fma(t, splat(kLog2e), splat(kMagic)) - kMagic;
  return {n, fma(n, splat(-kLn2Low), fma(n, splat(-kLn2High), t))};
}
// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2, interpolated at the Chebyshev nodes: exp(r) is off by 1e-8.
[[gnu::always_inline]] inline Floats beyond_linear(Floats r) {
  Floats p = splat(1.3926326e-3F);
  p = fma(p, r, splat(8.3632926e-3F));
  p = fma(p, r, splat(4.1666552e-2F));
  p = fma(p, r, splat(1.66665763e-1F));
  return fma(p, r, splat(0.5F));
}
[[gnu::always_inline]] inline Floats small_expm1(Floats r) { return fma(beyond_linear(r) * r, r, r); }
[[gnu::always_inline]] inline Floats small_exp(Floats r) {
  return fma(fma(beyond_linear(r), r, splat(1.0F)), r, splat(1.0F));
}

// Subnormal results as they should be.
[[gnu::always_inline]] inline Floats exp(Floats x) {
  const Exponent e = split_exponent(x, -104.0F);
  return scale_by_power(small_exp(e.r), e.n);
}

// The same for x <= 0, or NaN; results below 2e-38 may be 0.
[[gnu::always_inline]] inline Floats exp_negative(Floats x) {
  constexpr float kMagic = 12582912.0F;
  const Floats t = at_least(x, -105.0F);
  const Floats shifted = fma(t, splat(kLog2e), splat(kMagic));
  const Floats n = shifted - kMagic;
  const Floats r = fma(n, splat(-kLn2Low), fma(n, splat(-kLn2High), t));
#if defined(WB_ISA_avx512)
  return scale_by_power(small_exp(r), n);
#else
  const Floats result = small_exp(r) * from_bits((bits_of(shifted) + 127) << 23);
  return x < -86.9F ? Floats{} : result;
#endif
}

[[gnu::always_inline]] inline Floats expm1(Floats x) {
  const Exponent e = split_exponent(x, -20.0F);
  const Floats half = scale_by_power(splat(0.5F), e.n);
  return fma(half, small_expm1(e.r), half - 0.5F) * 2.0F;
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m by a polynomial in m - 1 (Cephes, logf).
[[gnu::always_inline]] inline Floats log(Floats x) {
  const Ints subnormal = x < 1.17549435e-38F;
  const Ints bits = bits_of(subnormal ? x * 8388608.0F : x);
  const Ints exponent = (bits - 0x3f3504f3) >> 23;  // sqrt(1/2)
  const Floats m = from_bits(bits - (exponent << 23)) - 1.0F;
  const Floats e = __builtin_convertvector(exponent, Floats) - (subnormal ? splat(23.0F) : Floats{});
  const Floats z = m * m;
  Floats p = splat(7.0376836292e-2F);
  p = fma(p, m, splat(-1.1514610310e-1F));
  p = fma(p, m, splat(1.1676998740e-1F));
  p = fma(p, m, splat(-1.2420140846e-1F));
  p = fma(p, m, splat(1.4249322787e-1F));
  p = fma(p, m, splat(-1.6668057665e-1F));
  p = fma(p, m, splat(2.0000714765e-1F));
  p = fma(p, m, splat(-2.4999993993e-1F));
  p = fma(p, m, splat(3.3333331174e-1F));
  const Floats tail = fma(splat(-0.5F), z, fma(e, splat(kLn2Low), m * z * p));
  const Floats finite = fma(e, splat(kLn2High), m + tail);
  const Floats upper = x < kInf ? finite : x;  // inf and NaN stay
  const Floats positive = x == 0.0F ? splat(-kInf) : upper;
  return x < 0.0F ? splat(__builtin_nanf("")) : positive;
}

// log(u) for u = 1 + x as rounded, and what rounding lost.
[[gnu::always_inline]] inline Floats log1p(Floats x) {
  const Floats u = x + 1.0F;
  const Floats lost = (x - (u - 1.0F)) / u;
  const Floats result = log(u);
  const Ints proper = (u > 0.0F) & (u < kInf);
  return proper ? result + lost : result;
}

[[gnu::always_inline]] inline Floats sigmoid(Floats x) { return 1.0F / (1.0F + exp(-x)); }
[[gnu::always_inline]] inline Floats silu(Floats x) { return x / (1.0F + exp(-x)); }

// q / (q + 2) with q = exp(2 |x|) - 1
[[gnu::always_inline]] inline Floats tanh(Floats x) {
  const Floats a = at_most(abs(x), 10.0F);
  const Floats q = expm1(a + a);
  return copysign(q / (q + 2.0F), x);
}

#if defined(WB_ISA_avx512)

inline constexpr ErfTable kErf(1.0, 1.0);
// erf(x / sqrt 2) / 2
inline constexpr ErfTable kHalfNormal(0.70710678118654752, 0.5);

[[gnu::always_inline]] inline Floats erf(Floats x) { return copysign(look_up(kErf, abs(x)), x); }
[[gnu::always_inline]] inline Floats gelu(Floats x) { return x * (copysign(look_up(kHalfNormal, abs(x)), x) + 0.5F); }

#else

// Chebyshev fits: erf(x) / x in x^2 on [0, 1], log(erfc(x)) on [1, 4].
[[gnu::always_inline]] inline Floats erf(Floats x) {
  const Floats a = abs(x);
  const Floats z = x * x;
  Floats s = splat(7.882497448e-05F);
  s = fma(s, z, splat(-8.018855005e-04F));
  s = fma(s, z, splat(5.189312156e-03F));
  s = fma(s, z, splat(-2.685432881e-02F));
  s = fma(s, z, splat(1.128359735e-01F));
  s = fma(s, z, splat(-3.761262596e-01F));
  s = fma(s, z, splat(1.128379107F));
  const Floats small = x * s;
  const Floats t = at_most(a, 4.0F);
  Floats q = splat(1.6140616e-06F);
  q = fma(q, t, splat(-4.5590623e-05F));
  q = fma(q, t, splat(5.92769531e-04F));
  q = fma(q, t, splat(-4.740222357e-03F));
  q = fma(q, t, splat(2.636471763e-02F));
  q = fma(q, t, splat(-1.099782437e-01F));
  q = fma(q, t, splat(-6.319370866e-01F));
  q = fma(q, t, splat(-1.13016665F));
  q = fma(q, t, splat(3.032129607e-04F));
  const Floats large = copysign(1.0F - exp_negative(q), x);
  return a < 1.0F ? small : large;
}

// x times the normal distribution: of -|x| as exp(-x^2 / 2) times a polynomial in t = 1 / (1 + 0.2316419 |x|), fitted
// by least squares weighted for the error of the result, which is 1e-8.
[[gnu::always_inline]] inline Floats gelu(Floats x) {
  const Floats a = abs(x);
  const Floats t = 1.0F / fma(a, splat(0.2316419F), splat(1.0F));
  Floats p = splat(-0.143693209F);
  p = fma(p, t, splat(0.725179076F));
  p = fma(p, t, splat(-0.987202883F));
  p = fma(p, t, splat(0.959873676F));
  p = fma(p, t, splat(-0.338068843F));
  p = fma(p, t, splat(0.203830823F));
  p = fma(p, t, splat(0.0800813362F));
  const Floats tail = p * t * exp_negative(-0.5F * a * a);
  return x * (x < 0.0F ? tail : 1.0F - tail);
}

#endif

// x / 2 (1 + tanh(u)) = x / (1 + exp(-2 u))
[[gnu::always_inline]] inline Floats gelu_tanh(Floats x) {
  const Floats inner = -1.59576912F * fma(0.044715F * x * x, x, x);
  return x / (1.0F + exp(inner));
}

// x tanh(log(1 + e^x)) = x (e^2 + 2 e) / (e^2 + 2 e + 2), e = exp(x)
[[gnu::always_inline]] inline Floats mish(Floats x) {
  const Floats e = exp(at_most(x, 20.0F));
  const Floats n = fma(e, e, e + e);
  return x * (n / (n + 2.0F));
}

[[gnu::always_inline]] inline Floats rsqrt(Floats x) { return 1.0F / sqrt(x); }

}  // namespace wb::engine::WB_ISA::math
