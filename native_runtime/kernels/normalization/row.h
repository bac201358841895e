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

// y = x scale + shift
template <typename T>
void scale_row(const T* x, std::int64_t n, T scale, T shift, T* y) {
  const Vec<T> a = splat(scale);
  const Vec<T> b = splat(shift);
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(y + i, fma(load(x + i), a, b));
  if (i < n) {
    const auto rest = static_cast<int>(n - i);
    store_first(y + i, fma(load_first(x + i, rest), a, b), rest);
  }
}

// y = (x scale + shift) weight + bias, element by element; null for 1 and 0.
template <typename T>
void scale_row(const T* x, std::int64_t n, T scale, T shift, const T* weight, const T* bias, T* y) {
  if (weight == nullptr && bias == nullptr) return scale_row(x, n, scale, shift, y);
  const Vec<T> a = splat(scale);
  const Vec<T> b = splat(shift);
  std::int64_t i = 0;
  const auto at = [&](auto load_part) {
    Vec<T> v = fma(load_part(x + i), a, b);
    const Vec<T> add = bias == nullptr ? Vec<T>{} : load_part(bias + i);
    return weight == nullptr ? v + add : fma(v, load_part(weight + i), add);
  };
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(y + i, at([](const T* p) { return load(p); }));
  if (i < n) {
    const auto rest = static_cast<int>(n - i);
    store_first(y + i, at([rest](const T* p) { return load_first(p, rest); }), rest);
  }
}

}  // namespace wb::kernels::WB_ISA
