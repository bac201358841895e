// _cdist_forward: out[..., i, j] = || x1[..., i, :] - x2[..., j, :] ||_p; _pdist_forward: the pairs i < j of one
// matrix.
#include <cmath>

#include "kernels/layout.h"

namespace wb::kernels::WB_ISA {
namespace {

struct DistanceState : DenseState {
  Lane lane = Lane::F32;
  std::int64_t rows1 = 0, rows2 = 0, width = 0;
};

// The p-norm of the difference; p = 0 counts what differs, p = inf is the largest.
template <typename T>
T distance(const T* a, const T* b, std::int64_t n, double p) {
  T sum{0};
  if (p == 2.0) {
    for (std::int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(sum);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const T d = std::fabs(a[i] - b[i]);
    if (p == 0.0) {
      sum += d != T{0} ? T{1} : T{0};
    } else if (p == 1.0) {
      sum += d;
    } else if (std::isinf(p)) {
      sum = d > sum || d != d ? d : sum;
    } else {
      sum += std::pow(d, static_cast<T>(p));
    }
  }
  return p == 0.0 || p == 1.0 || std::isinf(p) ? sum : std::pow(sum, static_cast<T>(1.0 / p));
}

Error check_power(const KernelContext& context, std::uint32_t arg) {
  if (context.arg(arg).scalar<double>() >= 0) return Error::Ok;
  return context.fail(Error::InvalidArgument, "argument %u (p): expected 0 or more", arg);
}

struct Cdist {
  using State = DistanceState;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "ttfIt"));
    WB_TRY(expect_floating(context, 0));
    WB_TRY(expect_same_dtype(context, 0, 1));
    WB_TRY(expect_same_dtype(context, 0, 4));
    state.lane = float_lane(context.tensor(0).dtype);
    return check_power(context, 2);
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& a = context.tensor(0);
    const Tensor& b = context.tensor(1);
    if (a.rank < 2) return context.fail(Error::InvalidArgument, "argument 0 (x1): expected rank 2 or more");
    WB_TRY(expect_rank(context, 1, a.rank));
    WB_TRY(expect_rank(context, 4, a.rank));
    for (int d = 0; d < a.rank - 2; ++d) WB_TRY(expect_size(context, 1, d, a.size(d)));
    WB_TRY(expect_size(context, 1, a.rank - 1, a.size(a.rank - 1)));
    state.rows1 = a.size(a.rank - 2);
    state.rows2 = b.size(b.rank - 2);
    state.width = a.size(a.rank - 1);
    state.shape.assign(a);
    state.shape.sizes[a.rank - 1] = b.sizes[b.rank - 2];
    state.scratch = contiguous_bytes(a, state.lane) + contiguous_bytes(b, state.lane) +
                    contiguous_output_bytes(context.tensor(4), state.shape, state.lane);
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(4), state.shape.span());
  }

  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) {
      using T = decltype(zero);
      Scratch scratch(context);
      const T* a = contiguous_input<T>(context.tensor(0), state.lane, scratch);
      const T* b = contiguous_input<T>(context.tensor(1), state.lane, scratch);
      const ContiguousOutput<T> out(context.tensor(4), state.lane, scratch);
      const double p = context.arg(2).scalar<double>();
      const std::int64_t count = context.tensor(4).numel();
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t row = k / state.rows2;  // of all batches' first rows
        const std::int64_t other = row / state.rows1 * state.rows2 + k % state.rows2;
        out.data()[k] = distance(a + row * state.width, b + other * state.width, state.width, p);
      }
      out.store();
      return Error::Ok;
    });
  }
};

struct Pdist {
  using State = DistanceState;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tft"));
    WB_TRY(expect_floating(context, 0));
    WB_TRY(expect_same_dtype(context, 0, 2));
    WB_TRY(expect_rank(context, 0, 2));
    WB_TRY(expect_rank(context, 2, 1));
    state.lane = float_lane(context.tensor(0).dtype);
    return check_power(context, 1);
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    state.rows1 = self.size(0);
    state.width = self.size(1);
    const std::int64_t pairs = state.rows1 < 2 ? 0 : state.rows1 * (state.rows1 - 1) / 2;
    if (pairs > INT32_MAX) return context.fail(Error::NotSupported, "argument 0: more than 2^31 pairs of rows");
    state.shape.rank = 1;
    state.shape.sizes[0] = static_cast<std::int32_t>(pairs);
    state.scratch =
        contiguous_bytes(self, state.lane) + contiguous_output_bytes(context.tensor(2), state.shape, state.lane);
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(2), state.shape.span());
  }

  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) {
      using T = decltype(zero);
      Scratch scratch(context);
      const T* x = contiguous_input<T>(context.tensor(0), state.lane, scratch);
      const ContiguousOutput<T> out(context.tensor(2), state.lane, scratch);
      const double p = context.arg(1).scalar<double>();
      T* to = out.data();
      for (std::int64_t i = 0; i < state.rows1; ++i) {
        for (std::int64_t j = i + 1; j < state.rows1; ++j) {
          *to++ = distance(x + i * state.width, x + j * state.width, state.width, p);
        }
      }
      out.store();
      return Error::Ok;
    });
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(distance_distance, dense<Cdist>("aten::_cdist_forward.out"), dense<Pdist>("aten::_pdist_forward.out"))
