// Elementary functions of float without branches, so that loops over them vectorize. Relative error below 4e-7 (erf,
// exp, log, tanh) over the whole range; NaN and infinities as in <cmath>.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/common/types.h"

namespace wb::kernels::WB_ISA {

// 2^n for n in [-126, 127].
inline float pow2i(std::int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

// exp(r + n ln 2) = 2^n exp(r), |r| <= ln 2 / 2; Taylor polynomial of degree 7; 2^n in two steps for subnormal results.
inline float fast_exp(float x) {
  const float low = x < -104.0F ? -104.0F : x;
  const float clamped = low > 89.0F ? 89.0F : low;
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = clamped * 1.44269504F + kMagic;
  const float n = shifted - kMagic;
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kMagic);
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = (p * r) * r + r;
  const std::int32_t half = exponent >> 1;
  const float result = (p + 1.0F) * pow2i(half) * pow2i(exponent - half);
  return x != x ? x : result;
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m by a polynomial in m - 1 (Cephes, logf).
inline float fast_log(float x) {
  const bool subnormal = x < 1.17549435e-38F;
  const float scaled = subnormal ? x * 8388608.0F : x;
  const std::int32_t bits = std::bit_cast<std::int32_t>(scaled);
  const std::int32_t shifted = bits - 0x3f3504f3;  // sqrt(1/2)
  const std::int32_t exponent = shifted >> 23;
  const float m = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0F;
  const float e = static_cast<float>(exponent) - (subnormal ? 23.0F : 0.0F);
  const float z = m * m;
  float p = 7.0376836292e-2F;
  p = p * m - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  const float tail = m * z * p - 2.12194440e-4F * e - 0.5F * z;
  const float result = (m + tail) + 0.693359375F * e;
  constexpr float kInf = __builtin_huge_valf();
  const float finite = x == kInf ? kInf : result;
  const float positive = x == 0.0F ? -kInf : finite;
  return x < 0.0F || x != x ? __builtin_nanf("") : positive;
}

inline float fast_tanh(float x) {
  const float a = std::fabs(x);
  const float z = x * x;
  float p = -5.70498872745e-3F;  // Cephes, tanhf
  p = p * z + 2.06390887954e-2F;
  p = p * z - 5.37397155531e-2F;
  p = p * z + 1.33314422036e-1F;
  p = p * z - 3.33332819422e-1F;
  const float small = x + x * z * p;
  const float large = std::copysign(1.0F - 2.0F / (fast_exp(2.0F * a) + 1.0F), x);
  return a < 0.625F ? small : large;
}

// Chebyshev fits: erf(x) / x in x^2 on [0, 1], log(erfc(x)) on [1, 4].
inline float fast_erf(float x) {
  const float a = std::fabs(x);
  const float z = x * x;
  float s = 7.882497448e-05F;
  s = s * z - 8.018855005e-04F;
  s = s * z + 5.189312156e-03F;
  s = s * z - 2.685432881e-02F;
  s = s * z + 1.128359735e-01F;
  s = s * z - 3.761262596e-01F;
  s = s * z + 1.128379107F;
  const float small = x * s;
  const float t = a < 4.0F ? a : 4.0F;
  float q = 1.6140616e-06F;
  q = q * t - 4.5590623e-05F;
  q = q * t + 5.92769531e-04F;
  q = q * t - 4.740222357e-03F;
  q = q * t + 2.636471763e-02F;
  q = q * t - 1.099782437e-01F;
  q = q * t - 6.319370866e-01F;
  q = q * t - 1.13016665F;
  q = q * t + 3.032129607e-04F;
  const float large = std::copysign(1.0F - fast_exp(q), x);
  const float result = a < 1.0F ? small : large;
  return x != x ? x : result;
}

inline double fast_exp(double x) { return std::exp(x); }
inline double fast_log(double x) { return std::log(x); }
inline double fast_tanh(double x) { return std::tanh(x); }
inline double fast_erf(double x) { return std::erf(x); }

}  // namespace wb::kernels::WB_ISA
