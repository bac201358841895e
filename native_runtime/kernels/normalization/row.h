// Mean and standard deviation of a row, and the row brought to mean 0 and deviation 1.
#pragma once

#include <cmath>

#include "kernels/simd.h"

namespace wb::kernels::WB_ISA {

template <typename T>
struct Moments {
  T mean, rstd;  // rstd = 1 / sqrt(variance + eps), of the biased variance
};

template <typename T>
T row_sum(const T* x, std::int64_t n) {
  Vec<T> a{}, b{};
  std::int64_t i = 0;
  for (; i + 2 * kLanes<T> <= n; i += 2 * kLanes<T>) {
    a = a + load(x + i);
    b = b + load(x + i + kLanes<T>);
  }
  T sum = sum_lanes<T>(a + b);
  for (; i < n; ++i) sum += x[i];
  return sum;
}

// Sum of (x - mean)^2.
template <typename T>
T row_squares(const T* x, std::int64_t n, T mean) {
  Vec<T> a{}, b{};
  const Vec<T> m = splat(mean);
  std::int64_t i = 0;
  for (; i + 2 * kLanes<T> <= n; i += 2 * kLanes<T>) {
    const Vec<T> u = load(x + i) - m;
    const Vec<T> v = load(x + i + kLanes<T>) - m;
    a = fma(u, u, a);
    b = fma(v, v, b);
  }
  T sum = sum_lanes<T>(a + b);
  for (; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum;
}

template <typename T>
Moments<T> row_moments(const T* x, std::int64_t n, T eps) {
  const T mean = row_sum(x, n) / static_cast<T>(n);
  return {mean, T{1} / std::sqrt(row_squares(x, n, mean) / static_cast<T>(n) + eps)};
}

// y = x scale + shift. Not fused, so that a row of equal elements becomes exactly 0 when shift is -(x scale).
template <typename T>
void scale_row(const T* x, std::int64_t n, T scale, T shift, T* y) {
  const Vec<T> a = splat(scale);
  const Vec<T> b = splat(shift);
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(y + i, load(x + i) * a + b);
  if (i < n) {
    const auto rest = static_cast<int>(n - i);
    store_first(y + i, load_first(x + i, rest) * a + b, rest);
  }
}

// y = (x - mean) rstd weight + bias, element by element; null for a weight of 1 and a bias of 0.
template <typename T>
void normalize_row(const T* x, std::int64_t n, const Moments<T>& moments, const T* weight, const T* bias, T* y) {
  const Vec<T> mean = splat(moments.mean);
  const Vec<T> rstd = splat(moments.rstd);
  const auto at = [&](std::int64_t i, auto load_part) {
    const Vec<T> v = (load_part(x + i) - mean) * rstd;
    const Vec<T> add = bias == nullptr ? Vec<T>{} : load_part(bias + i);
    return weight == nullptr ? v + add : fma(v, load_part(weight + i), add);
  };
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(y + i, at(i, [](const T* p) { return load(p); }));
  if (i < n) {
    const auto rest = static_cast<int>(n - i);
    store_first(y + i, at(i, [rest](const T* p) { return load_first(p, rest); }), rest);
  }
}

}  // namespace wb::kernels::WB_ISA
