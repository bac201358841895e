// x^y, with logarithm and exponential in double.
#pragma once

#include <initializer_list>

#include "engine/operators/common/math.h"

namespace wb::engine::WB_ISA::math {

using Doubles = Vec<double>;
using Longs = Vec<std::int64_t>;
typedef float HalfFloats __attribute__((vector_size(kVectorBytes / 2)));

// log2 m for m > 0 and finite: m = f 2^e with f in [sqrt(1/2), sqrt(2)); log f = 2 atanh((f - 1) / (f + 1)).
[[gnu::always_inline]] inline Doubles log2_of(Doubles m) {
  const Longs shifted = (Longs)m - 0x3fe6a09e667f3bcdLL;  // sqrt(1/2)
  const Longs exponent = shifted >> 52;
  const Doubles f = (Doubles)((Longs)m - (exponent << 52));
  const Doubles s = (f - 1.0) / (f + 1.0);
  const Doubles z = s * s;
  Doubles p = splat(2.8853900817779268 / 13);  // 2 / ln 2
  for (const double n : {11.0, 9.0, 7.0, 5.0, 3.0, 1.0}) p = fma(p, z, splat(2.8853900817779268 / n));
  // Whole numbers below 2^51 in their bits, plus 1.5 * 2^52.
  const Doubles e = (Doubles)(exponent + 0x4338000000000000LL) - 6755399441055744.0;
  return fma(p, s, e);
}
// 2^t for |t| <= 1000
[[gnu::always_inline]] inline Doubles exp2_of(Doubles t) {
  const Doubles shifted = t + 6755399441055744.0;  // 1.5 * 2^52
  const Doubles r = (t - (shifted - 6755399441055744.0)) * 0.69314718055994531;
  Doubles p = splat(1.0 / 40320);
  for (const double n : {5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0}) p = fma(p, r, splat(1.0 / n));
  return (Doubles)((Longs)p + ((Longs)shifted << 52));
}

// |x|^y, x not 0, infinite or NaN.
[[gnu::always_inline]] inline HalfFloats positive_power(HalfFloats x, HalfFloats y) {
  const Doubles t = log2_of(__builtin_convertvector(x, Doubles)) * __builtin_convertvector(y, Doubles);
  const Doubles limited = t > 300.0 ? splat(300.0) : t < -300.0 ? splat(-300.0) : t;
  return __builtin_convertvector(exp2_of(limited), HalfFloats);
}

[[gnu::always_inline]] inline Floats pow(Floats x, Floats y) {
  const Floats a = abs(x);
  const Ints special = (a == 0.0F) | (a == kInf) | (a == 1.0F) | (x != x) | (y != y);
  const Floats base = special ? splat(1.0F) : a;
  HalfFloats halves[2];
  HalfFloats exponents[2];
  std::memcpy(halves, &base, sizeof(base));
  std::memcpy(exponents, &y, sizeof(y));
  for (int i = 0; i < 2; ++i) halves[i] = positive_power(halves[i], exponents[i]);
  Floats result{};
  std::memcpy(&result, halves, sizeof(result));
  // 0 and infinity to a power; 1 (and -1) to any power is 1.
  const Floats edge = (a == 0.0F) == (y > 0.0F) ? Floats{} : splat(kInf);
  result = (a == 0.0F) | (a == kInf) ? edge : result;
  result = a == 1.0F ? splat(1.0F) : result;
  const Floats half = y * 0.5F;
  const Ints whole = trunc(y) == y;
  const Ints odd = whole & (trunc(half) != half);
  const Ints negative = bits_of(x) < 0;
  result = from_bits(bits_of(result) ^ (negative & odd & static_cast<std::int32_t>(0x80000000)));
  result = (x < 0.0F) & (whole == 0) & (a != kInf) ? splat(__builtin_nanf("")) : result;
  result = (x != x) | (y != y) ? x + y : result;
  return (y == 0.0F) | (x == 1.0F) ? splat(1.0F) : result;
}

}  // namespace wb::engine::WB_ISA::math
