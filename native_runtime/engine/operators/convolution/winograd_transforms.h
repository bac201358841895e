// Winograd's minimal filtering F(M x M, 3 x 3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
// 2016): an output tile of M x M is A^T [(G g G^T) * (B^T d B)] A, with the products * element by element. The matrices
// are those of Toom and Cook for points 0, +-1 and infinity (M = 2), 0, +-3/4, +-3/2 and infinity (M = 4): the latter
// give a third of the error of the usual +-1, +-2 (compare Barabasz et al., "Error Analysis and Improving the Accuracy
// of Winograd Convolution", 2020). Vectors hold channels.
#pragma once

#include "engine/operators/matmul/tile.h"

namespace wb::engine::WB_ISA::dense {

template <int M>
struct Winograd;

template <>
struct Winograd<2> {
  static constexpr int kSide = 4;

  // One dimension of B^T d, elements `step` apart.
  template <int From, int To>
  [[gnu::always_inline]] static void input(const Vector* d, Vector* to) {
    to[0] = d[0] - d[2 * From];
    to[To] = d[From] + d[2 * From];
    to[2 * To] = d[2 * From] - d[From];
    to[3 * To] = d[From] - d[3 * From];
  }
  // Rows kRows[Pair] of one dimension of G g.
  static constexpr int kRows[2][2] = {{0, 3}, {1, 2}};
  template <int Pair, int From>
  [[gnu::always_inline]] static void weight(const Vector* g, Vector* first, Vector* second) {
    if constexpr (Pair == 0) {
      *first = g[0];
      *second = g[2 * From];
    } else {
      const Vector even = (g[0] + g[2 * From]) * 0.5F;
      const Vector odd = g[From] * 0.5F;
      *first = even + odd;
      *second = even - odd;
    }
  }
  template <int From, int To>
  [[gnu::always_inline]] static void output(const Vector* m, Vector* to) {
    const Vector sum = m[From] + m[2 * From];
    const Vector difference = m[From] - m[2 * From];
    to[0] = m[0] + sum;
    to[To] = difference - m[3 * From];
  }
};

template <>
struct Winograd<4> {
  static constexpr int kSide = 6;
  static constexpr float kA = 0.75F, kB = 1.5F;
  static constexpr float kA2 = kA * kA, kB2 = kB * kB;

  [[gnu::always_inline]] static Vector multiply_add(Vector x, float factor, Vector y) {
    return simd::fma(x, simd::splat(factor), y);
  }

  // The factors of G's rows are here, where they cost nothing.
  static constexpr float kScaleA = 1 / (2 * kA2 * (kA2 - kB2));
  static constexpr float kScaleB = 1 / (2 * kB2 * (kB2 - kA2));

  template <int From, int To>
  [[gnu::always_inline]] static void input(const Vector* d, Vector* to) {
    constexpr float kZero = 1 / (kA2 * kB2);
    const Vector d1 = d[From];
    const Vector d2 = d[2 * From];
    const Vector d3 = d[3 * From];
    const Vector d4 = d[4 * From];
    to[0] = multiply_add(d2, -(kA2 + kB2) * kZero, multiply_add(d4, kZero, d[0]));
    const Vector even_a = multiply_add(d2, -kB2 * kScaleA, d4 * kScaleA);
    const Vector odd_a = multiply_add(d1, -kB2 * kA * kScaleA, d3 * (kA * kScaleA));
    to[To] = even_a + odd_a;
    to[2 * To] = even_a - odd_a;
    const Vector even_b = multiply_add(d2, -kA2 * kScaleB, d4 * kScaleB);
    const Vector odd_b = multiply_add(d1, -kA2 * kB * kScaleB, d3 * (kB * kScaleB));
    to[3 * To] = even_b + odd_b;
    to[4 * To] = even_b - odd_b;
    to[5 * To] = multiply_add(d1, kA2 * kB2, multiply_add(d3, -(kA2 + kB2), d[5 * From]));
  }
  // Rows kRows[Pair] of one dimension of G g, without their factors.
  static constexpr int kRows[3][2] = {{0, 5}, {1, 2}, {3, 4}};
  template <int Pair, int From>
  [[gnu::always_inline]] static void weight(const Vector* g, Vector* first, Vector* second) {
    if constexpr (Pair == 0) {
      *first = g[0];
      *second = g[2 * From];
    } else {
      constexpr float kPoint = Pair == 1 ? kA : kB;
      const Vector even = multiply_add(g[2 * From], kPoint * kPoint, g[0]);
      *first = multiply_add(g[From], kPoint, even);
      *second = multiply_add(g[From], -kPoint, even);
    }
  }
  template <int From, int To>
  [[gnu::always_inline]] static void output(const Vector* m, Vector* to) {
    const Vector sum_a = m[From] + m[2 * From];
    const Vector odd_a = m[From] - m[2 * From];
    const Vector sum_b = m[3 * From] + m[4 * From];
    const Vector odd_b = m[3 * From] - m[4 * From];
    to[0] = m[0] + sum_a + sum_b;
    to[To] = multiply_add(odd_a, kA, odd_b * kB);
    to[2 * To] = multiply_add(sum_a, kA2, sum_b * kB2);
    to[3 * To] = multiply_add(odd_a, kA2 * kA, multiply_add(odd_b, kB2 * kB, m[5 * From]));
  }
};

}  // namespace wb::engine::WB_ISA::dense
