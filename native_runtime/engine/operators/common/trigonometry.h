// Circular and hyperbolic functions and their inverses; see math.h for what is promised.
#pragma once

#include <cmath>

#include "engine/operators/common/math.h"

namespace wb::engine::WB_ISA::math {

inline constexpr float kHalfPi = 1.57079637F;

template <typename F>
[[gnu::always_inline]] inline Floats lane_by_lane(Floats x, F&& f) {
  for (int i = 0; i < kFloats; ++i) x[i] = f(x[i]);
  return x;
}

// x = n pi/2 + r with |r| <= pi/4. pi/2 in three parts; without fma() the upper ones have few bits, so that products
// by n are exact.
#if defined(WB_ISA_avx512) || defined(WB_ISA_avx2) || defined(__ARM_FEATURE_FMA)
inline constexpr float kQuarterParts[3] = {1.57079637F, -4.37113883e-8F, -1.71512449e-15F};
inline constexpr float kLargestAngle = 65536.0F;
#else
inline constexpr float kQuarterParts[3] = {1.5703125F, 4.837512969970703125e-4F, 7.549789948768648e-8F};
inline constexpr float kLargestAngle = 4096.0F;
#endif

struct Quadrant {
  Ints n;  // its lowest two bits count
  Floats r;
};
[[gnu::always_inline]] inline Quadrant split_quadrant(Floats x) {
  constexpr float kMagic = 12582912.0F;
  const Floats shifted = fma(x, splat(0.636619772F), splat(kMagic));
  const Floats n = shifted - kMagic;
  Floats r = fma(n, splat(-kQuarterParts[0]), x);
  r = fma(n, splat(-kQuarterParts[1]), r);
  r = fma(n, splat(-kQuarterParts[2]), r);
  return {bits_of(shifted), r};
}
// sin r and cos r (Cephes, sinf)
[[gnu::always_inline]] inline Floats small_sin(Floats r) {
  const Floats z = r * r;
  Floats p = splat(-1.9515295891e-4F);
  p = fma(p, z, splat(8.3321608736e-3F));
  p = fma(p, z, splat(-1.6666654611e-1F));
  return fma(p * z, r, r);
}
[[gnu::always_inline]] inline Floats small_cos(Floats r) {
  const Floats z = r * r;
  Floats p = splat(2.443315711809948e-5F);
  p = fma(p, z, splat(-1.388731625493765e-3F));
  p = fma(p, z, splat(4.166664568298827e-2F));
  return fma(p * z, z, fma(z, splat(-0.5F), splat(1.0F)));
}
// Angles that three parts of pi/2 are too few for, in any lane. Rare.
[[gnu::always_inline]] inline bool has_large_angle(Floats x) { return largest_of(abs(x)) > kLargestAngle; }

// sin (x + n pi/2)
[[gnu::always_inline]] inline Floats sin_from(const Quadrant& q, std::int32_t n) {
  const Ints turned = q.n + n;
  const Floats value = (turned & 1) != 0 ? small_cos(q.r) : small_sin(q.r);
  return from_bits(bits_of(value) ^ ((turned & 2) << 30));
}
[[gnu::always_inline]] inline Floats sin(Floats x) {
  if (has_large_angle(x)) return lane_by_lane(x, sinf);
  return x == 0.0F ? x : sin_from(split_quadrant(x), 0);
}
[[gnu::always_inline]] inline Floats cos(Floats x) {
  if (has_large_angle(x)) return lane_by_lane(x, cosf);
  return sin_from(split_quadrant(x), 1);
}
[[gnu::always_inline]] inline Floats tan(Floats x) {
  if (has_large_angle(x)) return lane_by_lane(x, tanf);
  const Quadrant q = split_quadrant(x);
  const Floats s = small_sin(q.r);
  const Floats c = small_cos(q.r);
  const Ints odd = (q.n & 1) != 0;
  return x == 0.0F ? x : (odd ? -c : s) / (odd ? s : c);
}

// atan t for |t| <= tan(pi/8) (Cephes, atanf)
[[gnu::always_inline]] inline Floats small_atan(Floats t) {
  const Floats z = t * t;
  Floats p = splat(8.05374449538e-2F);
  p = fma(p, z, splat(-1.38776856032e-1F));
  p = fma(p, z, splat(1.99777106478e-1F));
  p = fma(p, z, splat(-3.33329491539e-1F));
  return fma(p * z, t, t);
}
// atan(y / x) for y, x >= 0, one division: about 0, pi/4 or pi/2.
[[gnu::always_inline]] inline Floats atan_of_ratio(Floats y, Floats x) {
  const Ints steep = y > x * 2.41421356F;
  const Ints middle = y > x * 0.414213562F;
  const Floats n = steep ? -x : middle ? y - x : y;
  const Floats d = steep ? y : middle ? y + x : x;
  const Floats base = steep ? splat(kHalfPi) : middle ? splat(kHalfPi / 2) : Floats{};
  return base + small_atan(n / d);
}
[[gnu::always_inline]] inline Floats atan(Floats x) { return copysign(atan_of_ratio(abs(x), splat(1.0F)), x); }
[[gnu::always_inline]] inline Floats atan2(Floats y, Floats x) {
  const Floats a = abs(y);
  const Floats b = abs(x);
  const Ints both = ((a == kInf) & (b == kInf)) | ((a == 0.0F) & (b == 0.0F));  // the ratio is 1, or 0
  const Floats ones = a == 0.0F ? Floats{} : splat(1.0F);
  const Floats angle = atan_of_ratio(both ? ones : a, both ? splat(1.0F) : b);
  return copysign(bits_of(x) < 0 ? 2.0F * kHalfPi - angle : angle, y) + (x != x ? x : Floats{});
}

// asin t for t in [0, 1/2] (Cephes, asinf), z = t^2
[[gnu::always_inline]] inline Floats small_asin(Floats t, Floats z) {
  Floats p = splat(4.2163199048e-2F);
  p = fma(p, z, splat(2.4181311049e-2F));
  p = fma(p, z, splat(4.5470025998e-2F));
  p = fma(p, z, splat(7.4953002686e-2F));
  p = fma(p, z, splat(1.6666752422e-1F));
  return fma(p * z, t, t);
}
// asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)) beyond 1/2
[[gnu::always_inline]] inline Floats asin(Floats x) {
  const Floats a = abs(x);
  const Ints large = a > 0.5F;
  const Floats z = large ? 0.5F * (1.0F - a) : a * a;
  const Floats s = small_asin(large ? sqrt(z) : a, z);
  return copysign(large ? kHalfPi - (s + s) : s, x);
}
[[gnu::always_inline]] inline Floats acos(Floats x) {
  const Floats a = abs(x);
  const Ints large = a > 0.5F;
  const Floats z = large ? 0.5F * (1.0F - a) : a * a;
  const Floats s = small_asin(large ? sqrt(z) : a, z);
  const Floats outer = x < 0.0F ? 2.0F * kHalfPi - (s + s) : s + s;
  return large ? outer : kHalfPi - copysign(s, x);
}

// By exp(a / 2), which does not overflow before the result does.
[[gnu::always_inline]] inline Floats cosh(Floats x) {
  const Floats h = exp(abs(x) * 0.5F);
  return fma(0.5F * h, h, 0.5F / h / h);
}
[[gnu::always_inline]] inline Floats sinh(Floats x) {
  const Floats a = abs(x);
  const Floats q = expm1(at_most(a, 80.0F));
  const Floats h = exp(a * 0.5F);
  return copysign(a < 80.0F ? 0.5F * (q + q / (q + 1.0F)) : 0.5F * h * h, x) + (x != x ? x : Floats{});
}

}  // namespace wb::engine::WB_ISA::math
