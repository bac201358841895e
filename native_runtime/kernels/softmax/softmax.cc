// softmax and log_softmax along one dimension, with the largest element subtracted first.
#include <algorithm>
#include <cmath>

#include "kernels/layout.h"
#include "kernels/simd.h"

namespace wb::kernels::WB_ISA {
namespace {

struct SoftmaxState : DenseState {
  int dim = 0;
  Lane lane = Lane::F32;
};

// Calls f(offset, lanes) for whole vectors, then for what is left.
template <typename T, typename F>
[[gnu::always_inline]] inline void for_vectors(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) f(i, kLanes<T>);
  if (i < n) f(i, static_cast<int>(n - i));
}

template <typename T>
[[gnu::always_inline]] inline Vec<T> load_n(const T* p, int n, T other) {
  if (n == kLanes<T>) return load(p);
  Vec<T> v = load_first(p, n);
  for (int i = 0; i < kLanes<T>; ++i) v[i] = i < n ? v[i] : other;
  return v;
}

template <typename T>
[[gnu::always_inline]] inline void store_n(T* p, Vec<T> v, int n) {
  if (n == kLanes<T>) {
    store(p, v);
  } else {
    store_first(p, v, n);
  }
}

// Elements next to each other.
template <typename T, bool Log>
void dense_row(const T* in, std::int64_t n, T* out) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  Vec<T> best = splat(kLowest);
  for_vectors<T>(n, [&](std::int64_t i, int count) { best = max(best, load_n(in + i, count, kLowest)); });
  const T largest = max_lanes<T>(best);
  Vec<T> sums{};
  for_vectors<T>(n, [&](std::int64_t i, int count) {
    const Vec<T> e = exp(load_n(in + i, count, kLowest) - splat(largest));
    if constexpr (!Log) store_n(out + i, e, count);
    sums = sums + e;
  });
  const T sum = sum_lanes<T>(sums);
  if constexpr (Log) {
    const T shift = std::log(sum);
    for_vectors<T>(n, [&](std::int64_t i, int count) {
      store_n(out + i, load_n(in + i, count, T{0}) - splat(largest) - splat(shift), count);
    });
  } else {
    const Vec<T> scale = splat(T{1} / sum);
    for_vectors<T>(n,
                   [&](std::int64_t i, int count) { store_n(out + i, load_n(out + i, count, T{0}) * scale, count); });
  }
}

// As many neighbouring columns as a vector has lanes; elements of a column are `step` apart.
template <typename T, bool Log>
void columns(const T* in, std::int64_t n, std::int64_t step, int count, T* out) {
  Vec<T> largest = splat(-std::numeric_limits<T>::infinity());
  for (std::int64_t i = 0; i < n; ++i) largest = max(largest, load_n(in + i * step, count, T{0}));
  Vec<T> sum{};
  for (std::int64_t i = 0; i < n; ++i) {
    const Vec<T> e = exp(load_n(in + i * step, count, T{0}) - largest);
    if constexpr (!Log) store_n(out + i * step, e, count);
    sum = sum + e;
  }
  if constexpr (Log) {
    for (int lane = 0; lane < kLanes<T>; ++lane) sum[lane] = std::log(sum[lane]);
    for (std::int64_t i = 0; i < n; ++i) {
      store_n(out + i * step, load_n(in + i * step, count, T{0}) - largest - sum, count);
    }
  } else {
    const Vec<T> scale = splat(T{1}) / sum;
    for (std::int64_t i = 0; i < n; ++i) store_n(out + i * step, load_n(out + i * step, count, T{0}) * scale, count);
  }
}

template <typename T, bool Log>
Error run_lane(KernelContext& context, const SoftmaxState& state) {
  Scratch scratch(context);
  Tensor& result = context.tensor(3);
  const T* in = input_like<T>(context.tensor(0), result, state.lane, scratch);
  const StagedOutput<T> out(result, state.lane, scratch);
  const AxisView view(result, state.dim);
  if (result.numel() == 0) return Error::Ok;
  for (std::int64_t o = 0; o < view.outer; ++o) {
    const std::int64_t base = o * view.size * view.inner;
    if (view.inner == 1) {
      dense_row<T, Log>(in + base, view.size, out.data() + base);
      continue;
    }
    for_vectors<T>(view.inner, [&](std::int64_t i, int count) {
      columns<T, Log>(in + base + i, view.size, view.inner, count, out.data() + base + i);
    });
  }
  out.store();
  return Error::Ok;
}

template <bool Log>
struct Softmax {
  using State = SoftmaxState;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tibt"));
    WB_TRY(expect_floating(context, 0));
    WB_TRY(expect_floating(context, 3));
    if (!context.arg(2).payload.as_bool) WB_TRY(expect_same_dtype(context, 0, 3));
    if (context.arg(2).payload.as_bool) WB_TRY(expect_dtype(context, 3, ScalarType::Float));
    WB_TRY(expect_rank(context, 3, context.tensor(0).rank));
    state.lane = float_lane(context.tensor(0).dtype);
    return Error::Ok;
  }
  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    WB_TRY(get_dim(context, 1, self.rank, &state.dim));
    state.shape.assign(self);
    state.scratch = like_bytes(self, state.lane) + output_bytes(context.tensor(3), state.shape, state.lane);
    return Error::Ok;
  }
  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(3), state.shape.span());
  }
  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) { return run_lane<decltype(zero), Log>(context, state); });
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(softmax_softmax, dense<Softmax<false>>("aten::_softmax.out"), dense<Softmax<true>>("aten::_log_softmax.out"))
