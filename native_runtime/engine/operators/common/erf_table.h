// erf by table: a short polynomial around the nearest of 32 places. For instruction sets that look up 32 floats by a
// vector of indices in one step.
#pragma once

#include "engine/operators/common/lanes.h"

namespace wb::engine::WB_ISA::math {

// erf(a scale) for a in [0, 4 / scale], as sum of c[j][k] (a - k step)^j; the last place stands for all beyond:
// `limit`.
struct ErfTable {
  static constexpr int kPlaces = 32, kTerms = 5;
  alignas(64) float c[kTerms][kPlaces] = {};
  float step = 0;

  // Multiplies the result by `factor`.
  constexpr ErfTable(double scale, double factor) {
    const double width = 4.0 / (kPlaces - 1);  // of a place, in the argument of erf
    step = static_cast<float>(width / scale);
    for (int k = 0; k + 1 < kPlaces; ++k) {
      // The places that are computed with: multiples of `step` as rounded.
      double terms[kTaylor] = {};
      taylor(k * static_cast<double>(step) * scale, terms);
      if (k == 0) {
        economize(terms + 1, kTaylor - 1, kTerms - 1, width / 2, true);  // of erf(t) / t, for t >= 0
      } else {
        economize(terms, kTaylor, kTerms, width / 2, false);
      }
      double power = factor;
      for (int j = 0; j < kTerms; ++j, power *= scale) c[j][k] = static_cast<float>(terms[j] * power);
    }
    c[0][kPlaces - 1] = static_cast<float>(factor);
  }

 private:
  static constexpr int kTaylor = 10;

  static constexpr double exp_minus(double y) {  // e^-y
    double sum = 1;
    double term = 1;
    for (int n = 1; n < 120; ++n) {
      term *= y / n;
      sum += term;
    }
    return 1 / sum;
  }
  // Derivatives by n! of erf at x: those of 2 / sqrt(pi) e^(-x^2), whose series g has (n + 1) g[n + 1] = -2 (x g[n] +
  // g[n - 1]).
  static constexpr void taylor(double x, double* terms) {
    const double front = 1.1283791670955126 * exp_minus(x * x);
    double term = x;
    double sum = x;
    for (int n = 1; n < 120; ++n) {
      term *= 2 * x * x / (2 * n + 1);
      sum += term;
    }
    terms[0] = front * sum;
    double before = 0;
    double now = front;
    for (int n = 0; n + 1 < kTaylor; ++n) {
      terms[n + 1] = now / (n + 1);
      const double next = -2 * (x * now + before) / (n + 1);
      before = now;
      now = next;
    }
  }
  // Replaces the powers from `keep` on by their best approximation on [-h, h] ([0, h] if `positive`) by lower ones:
  // t^n less the Chebyshev polynomial with that leading power.
  static constexpr void economize(double* terms, int count, int keep, double h, bool positive) {
    for (int n = count - 1; n >= keep; --n) {
      double before[kTaylor + 1] = {1};
      double chebyshev[kTaylor + 1] = {positive ? -1.0 : 0.0, positive ? 2.0 : 1.0};
      for (int m = 1; m < n; ++m) {
        double next[kTaylor + 1] = {};
        for (int j = 0; j <= m; ++j) {
          next[j + 1] += (positive ? 4 : 2) * chebyshev[j];
          next[j] -= (positive ? 2 : 0) * chebyshev[j] + before[j];
        }
        for (int j = 0; j <= n; ++j) {
          before[j] = chebyshev[j];
          chebyshev[j] = next[j];
        }
      }
      double power = 1;  // h^(n - j)
      for (int j = n; j >= 0; --j, power *= h) {
        if (j < n) terms[j] -= terms[n] * chebyshev[j] / chebyshev[n] * power;
      }
      terms[n] = 0;
    }
  }
};

#if defined(WB_ISA_avx512)
// For x >= 0, or NaN.
[[gnu::always_inline]] inline Floats look_up(const ErfTable& table, Floats x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, which the lowest bits hold
  const Floats a = at_most(x, table.step * (ErfTable::kPlaces - 1));
  const Floats shifted = fma(a, splat(1.0F / table.step), splat(kMagic));
  const Floats t = fma(shifted - kMagic, splat(-table.step), a);
  const auto term = [&](int j) {
    return (Floats)_mm512_permutex2var_ps(_mm512_load_ps(table.c[j]), (__m512i)shifted,
                                          _mm512_load_ps(table.c[j] + kFloats));
  };
  Floats p = term(ErfTable::kTerms - 1);
#pragma GCC unroll 8
  for (int j = ErfTable::kTerms - 2; j >= 0; --j) p = fma(p, t, term(j));
  return p;
}
#endif

}  // namespace wb::engine::WB_ISA::math
