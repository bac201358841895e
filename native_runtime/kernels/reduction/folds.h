// The folds of reductions: accumulators and how elements go into them.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/reduction/reduce.h"

namespace wb::kernels::WB_ISA {

// A fold gives: `A init`, `A fold(A, T)`, `R finish(A, count, parameter)`, and may give `row`.
template <typename F, typename T, typename A, typename R>
struct FoldFunctions {
  static void init(void* accumulators, std::int64_t n) {
    A* a = static_cast<A*>(accumulators);
    for (std::int64_t i = 0; i < n; ++i) a[i] = F::template init<A>();
  }
  static void row(void* accumulator, const void* data, std::int64_t n) {
    A& a = *static_cast<A*>(accumulator);
    const T* p = static_cast<const T*>(data);
    if constexpr (requires { F::row(a, p, n); }) {
      F::row(a, p, n);
    } else {
      constexpr int kWays = 32;  // independent accumulators, which vectorize
      std::int64_t i = 0;
      if (n >= 2 * kWays) {
        T ways[kWays];
        for (int w = 0; w < kWays; ++w) ways[w] = p[w];
        for (i = kWays; i + kWays <= n; i += kWays) {
          for (int w = 0; w < kWays; ++w) ways[w] = F::template combine<T>(ways[w], p[i + w]);
        }
        for (int w = 0; w < kWays; ++w) a = F::template combine<A>(a, static_cast<A>(ways[w]));
      }
      for (; i < n; ++i) a = F::template combine<A>(a, static_cast<A>(p[i]));
    }
  }
  static void column(void* accumulators, const void* data, std::int64_t n) {
    A* a = static_cast<A*>(accumulators);
    const T* p = static_cast<const T*>(data);
    if constexpr (requires { F::fold(a[0], p[0]); }) {
      for (std::int64_t i = 0; i < n; ++i) a[i] = F::fold(a[i], p[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) a[i] = F::template combine<A>(a[i], static_cast<A>(p[i]));
    }
  }
  static void finish(void* out, const void* accumulators, std::int64_t n, double count, double parameter) {
    R* r = static_cast<R*>(out);
    const A* a = static_cast<const A*>(accumulators);
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (requires { F::finish(a[i], count, parameter); }) {
        r[i] = static_cast<R>(F::finish(a[i], count, parameter));
      } else {
        r[i] = static_cast<R>(a[i]);
      }
    }
  }
};

template <typename F, typename T, typename A, typename R = T>
constexpr ReduceOp fold_op() {
  static_assert(sizeof(A) <= kMaxAccumulator);
  using Functions = FoldFunctions<F, T, A, R>;
  return {sizeof(A), Functions::init, Functions::row, Functions::column, Functions::finish};
}

// Sums in blocks: float partial sums stay short, and go into a double.
struct SumFold {
  template <typename A>
  static A init() {
    return A{0};
  }
  template <typename A>
  static A combine(A a, A x) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(x));
    } else {
      return a + x;
    }
  }
  static void row(double& a, const float* p, std::int64_t n) {
    constexpr int kWays = 32;
    constexpr std::int64_t kStretch = 64 * kWays;
    double total = 0;
    std::int64_t i = 0;
    while (i + kWays <= n) {
      float ways[kWays] = {};
      const std::int64_t end = n - i < kStretch ? i + (n - i) / kWays * kWays : i + kStretch;
      for (; i < end; i += kWays) {
        for (int w = 0; w < kWays; ++w) ways[w] += p[i + w];
      }
      for (int w = 0; w < kWays / 2; ++w) ways[w] += ways[w + kWays / 2];
      for (int w = 0; w < kWays / 4; ++w) ways[w] += ways[w + kWays / 4];
      for (int w = 0; w < kWays / 4; ++w) total += static_cast<double>(ways[w]);
    }
    for (; i < n; ++i) total += static_cast<double>(p[i]);
    a += total;
  }
};

struct MeanFold : SumFold {
  static double finish(double a, double count, double /*parameter*/) { return a / count; }
};

struct ProdFold {
  template <typename A>
  static A init() {
    return A{1};
  }
  template <typename A>
  static A combine(A a, A x) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(x));
    } else {
      return a * x;
    }
  }
};

// NaN wins.
struct MaxFold {
  template <typename A>
  static A init() {
    return std::is_floating_point_v<A> ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
  }
  template <typename A>
  static A combine(A a, A x) {
    const A larger = a > x ? a : x;
    return a != a ? a : larger;
  }
};

struct MinFold {
  template <typename A>
  static A init() {
    return std::is_floating_point_v<A> ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
  }
  template <typename A>
  static A combine(A a, A x) {
    const A smaller = a < x ? a : x;
    return a != a ? a : smaller;
  }
};

struct AnyFold {
  template <typename A>
  static A init() {
    return false;
  }
  template <typename A>
  static A combine(A a, A x) {
    return (a | x) != 0;
  }
};

struct AllFold {
  template <typename A>
  static A init() {
    return true;
  }
  template <typename A>
  static A combine(A a, A x) {
    return (a & x) != 0;
  }
};

// Sums of x - k and (x - k)^2 in double, k the first element: no cancellation where the mean is large.
struct Moments {
  double k, sum, squares;
  bool started;
};

struct VarFold {
  template <typename A>
  static A init() {
    return A{};
  }
  template <typename T>
  static Moments fold(Moments m, T x) {
    const double value = static_cast<double>(x);
    if (!m.started) m = {value, 0, 0, true};
    const double d = value - m.k;
    m.sum += d;
    m.squares += d * d;
    return m;
  }
  template <typename T>
  static void row(Moments& m, const T* p, std::int64_t n) {
    if (n == 0) return;
    if (!m.started) m = {static_cast<double>(p[0]), 0, 0, true};
    constexpr int kWays = 8;
    double sums[kWays] = {};
    double squares[kWays] = {};
    std::int64_t i = 0;
    for (; i + kWays <= n; i += kWays) {
      for (int w = 0; w < kWays; ++w) {
        const double d = static_cast<double>(p[i + w]) - m.k;
        sums[w] += d;
        squares[w] += d * d;
      }
    }
    for (; i < n; ++i) {
      const double d = static_cast<double>(p[i]) - m.k;
      sums[0] += d;
      squares[0] += d * d;
    }
    for (int w = 0; w < kWays; ++w) m.sum += sums[w], m.squares += squares[w];
  }
  static double finish(const Moments& m, double count, double correction) {
    const double spread = m.squares - m.sum * m.sum / count;
    const double divisor = count - correction;
    return (spread < 0 ? 0 : spread) / (divisor < 0 ? 0 : divisor);
  }
};

struct StdFold : VarFold {
  static double finish(const Moments& m, double count, double correction) {
    return std::sqrt(VarFold::finish(m, count, correction));
  }
};

}  // namespace wb::kernels::WB_ISA
