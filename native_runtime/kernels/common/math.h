// Elementary functions of float without branches, inlined everywhere, so that loops over them vectorize. Relative error
// below 4e-7 (erf, exp, log, tanh) over the whole range; NaN and infinities as in <cmath>.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/common/types.h"

namespace wb::kernels::WB_ISA {

// 2^n for n in [-126, 127].
[[gnu::always_inline]] inline float pow2i(std::int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

// a b + c, in one step where the processor has it.
[[gnu::always_inline]] inline float madd(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// c ? a : b by bits: the compiler would compute an expensive side behind a branch, which does not vectorize.
[[gnu::always_inline]] inline float pick(bool c, float a, float b) {
  const std::int32_t mask = -static_cast<std::int32_t>(c);
  return std::bit_cast<float>((std::bit_cast<std::int32_t>(a) & mask) | (std::bit_cast<std::int32_t>(b) & ~mask));
}

// x = n ln 2 + r, |r| <= ln 2 / 2, clamped to where exp is neither 0 nor infinite by far.
struct Exponent {
  std::int32_t n;
  float p;  // exp(r) - 1, Taylor polynomial of degree 7
};

[[gnu::always_inline]] inline Exponent split_exp(float x) {
  const float low = x < -104.0F ? -104.0F : x;
  const float clamped = low > 89.0F ? 89.0F : low;
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = clamped * 1.44269504F + kMagic;
  const float n = shifted - kMagic;
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 5040.0F;
  p = madd(p, r, 1.0F / 720.0F);
  p = madd(p, r, 1.0F / 120.0F);
  p = madd(p, r, 1.0F / 24.0F);
  p = madd(p, r, 1.0F / 6.0F);
  p = madd(p, r, 0.5F);
  p = madd(p * r, r, r);
  return {std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kMagic), p};
}

// 2^n (1 + p); 2^n in two steps for subnormal results.
[[gnu::always_inline]] inline float fast_exp(float x) {
  const Exponent e = split_exp(x);
  const std::int32_t half = e.n >> 1;
  const float result = (e.p + 1.0F) * pow2i(half) * pow2i(e.n - half);
  return x != x ? x : result;
}

// 2^n p + (2^n - 1); above 2^127 as exp.
[[gnu::always_inline]] inline float fast_expm1(float x) {
  const Exponent e = split_exp(x);
  const float scale = pow2i(e.n > 127 ? 127 : e.n < -100 ? -100 : e.n);
  const float result = pick(e.n > 126, fast_exp(x), scale * e.p + (scale - 1.0F));
  return x != x ? x : result;
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m by a polynomial in m - 1 (Cephes, logf).
[[gnu::always_inline]] inline float fast_log(float x) {
  const bool subnormal = x < 1.17549435e-38F;
  const float scaled = subnormal ? x * 8388608.0F : x;
  const std::int32_t bits = std::bit_cast<std::int32_t>(scaled);
  const std::int32_t shifted = bits - 0x3f3504f3;  // sqrt(1/2)
  const std::int32_t exponent = shifted >> 23;
  const float m = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0F;
  const float e = static_cast<float>(exponent) - (subnormal ? 23.0F : 0.0F);
  const float z = m * m;
  float p = 7.0376836292e-2F;
  p = madd(p, m, -1.1514610310e-1F);
  p = madd(p, m, 1.1676998740e-1F);
  p = madd(p, m, -1.2420140846e-1F);
  p = madd(p, m, 1.4249322787e-1F);
  p = madd(p, m, -1.6668057665e-1F);
  p = madd(p, m, 2.0000714765e-1F);
  p = madd(p, m, -2.4999993993e-1F);
  p = madd(p, m, 3.3333331174e-1F);
  const float tail = m * z * p - 2.12194440e-4F * e - 0.5F * z;
  const float result = (m + tail) + 0.693359375F * e;
  constexpr float kInf = __builtin_huge_valf();
  const float finite = x == kInf ? kInf : result;
  const float positive = x == 0.0F ? -kInf : finite;
  return x < 0.0F || x != x ? __builtin_nanf("") : positive;
}

[[gnu::always_inline]] inline float fast_tanh(float x) {
  const float a = std::fabs(x);
  const float z = x * x;
  float p = -5.70498872745e-3F;  // Cephes, tanhf
  p = madd(p, z, 2.06390887954e-2F);
  p = madd(p, z, -5.37397155531e-2F);
  p = madd(p, z, 1.33314422036e-1F);
  p = madd(p, z, -3.33332819422e-1F);
  const float small = x + x * z * p;
  const float large = std::copysign(1.0F - 2.0F / (fast_exp(2.0F * a) + 1.0F), x);
  return pick(a < 0.625F, small, large);
}

// Chebyshev fits: erf(x) / x in x^2 on [0, 1], log(erfc(x)) on [1, 4].
[[gnu::always_inline]] inline float fast_erf(float x) {
  const float a = std::fabs(x);
  const float z = x * x;
  float s = 7.882497448e-05F;
  s = madd(s, z, -8.018855005e-04F);
  s = madd(s, z, 5.189312156e-03F);
  s = madd(s, z, -2.685432881e-02F);
  s = madd(s, z, 1.128359735e-01F);
  s = madd(s, z, -3.761262596e-01F);
  s = madd(s, z, 1.128379107F);
  const float small = x * s;
  const float t = a > 4.0F ? 4.0F : a;  // NaN stays
  float q = 1.6140616e-06F;
  q = madd(q, t, -4.5590623e-05F);
  q = madd(q, t, 5.92769531e-04F);
  q = madd(q, t, -4.740222357e-03F);
  q = madd(q, t, 2.636471763e-02F);
  q = madd(q, t, -1.099782437e-01F);
  q = madd(q, t, -6.319370866e-01F);
  q = madd(q, t, -1.13016665F);
  q = madd(q, t, 3.032129607e-04F);
  const float large = std::copysign(1.0F - fast_exp(q), x);
  return pick(a < 1.0F, small, large);
}

inline double fast_exp(double x) { return std::exp(x); }
inline double fast_expm1(double x) { return std::expm1(x); }
inline double fast_log(double x) { return std::log(x); }
inline double fast_tanh(double x) { return std::tanh(x); }
inline double fast_erf(double x) { return std::erf(x); }

}  // namespace wb::kernels::WB_ISA
