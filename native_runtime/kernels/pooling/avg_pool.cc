// avg_pool2d and the adaptive average pools: the mean of each window.
#include "kernels/pooling/window.h"

namespace wb::kernels::WB_ISA {
namespace {

// One window along one dimension: the inputs [first, last), and how many positions count in the divisor.
struct Extent {
  std::int64_t first, last, counted;
};

struct AvgPoolState : DenseState {
  Lane lane = Lane::F32;
  Planes planes;
  WindowAxis axes[2];
  bool adaptive = false;
  bool count_padding = true;
  std::int64_t divisor = 0;  // 0: the size of the window
};

Extent extent_of(const AvgPoolState& state, const WindowAxis& axis, std::int64_t o) {
  if (state.adaptive) {
    const std::int64_t first = o * axis.in / axis.out;
    const std::int64_t last = ((o + 1) * axis.in + axis.out - 1) / axis.out;
    return {first, last, last - first};
  }
  const std::int64_t start = o * axis.stride - axis.padding;
  const std::int64_t end = std::min(start + axis.kernel, axis.in + axis.padding);
  const std::int64_t first = std::max<std::int64_t>(start, 0);
  const std::int64_t last = std::max(first, std::min(end, axis.in));
  return {first, last, state.count_padding ? end - start : last - first};
}

template <typename T>
T window_sum(const T* plane, const PoolStrides& in, const Extent& y, const Extent& x) {
  T sum{0};
  for (std::int64_t iy = y.first; iy < y.last; ++iy) {
    const T* row = plane + iy * in.h;
    for (std::int64_t ix = x.first; ix < x.last; ++ix) sum += row[ix * in.w];
  }
  return sum;
}

template <typename T>
Error run_lane(KernelContext& context, const AvgPoolState& state, std::uint32_t out_arg) {
  Scratch scratch(context);
  Tensor& result = context.tensor(out_arg);
  const T* data = staged_input<T>(context.tensor(0), state.lane, scratch);
  const StagedOutput<T> out(result, state.lane, scratch);
  const PoolStrides in(context.tensor(0));
  const PoolStrides to(result);
  for (std::int64_t n = 0; n < state.planes.batch; ++n) {
    for (std::int64_t oy = 0; oy < state.axes[0].out; ++oy) {
      const Extent y = extent_of(state, state.axes[0], oy);
      for (std::int64_t ox = 0; ox < state.axes[1].out; ++ox) {
        const Extent x = extent_of(state, state.axes[1], ox);
        const auto count = static_cast<T>(state.divisor != 0 ? state.divisor : y.counted * x.counted);
        for (std::int64_t c = 0; c < state.planes.channels; ++c) {
          out.data()[n * to.n + c * to.c + oy * to.h + ox * to.w] =
              window_sum(data + n * in.n + c * in.c, in, y, x) / count;
        }
      }
    }
  }
  out.store();
  return Error::Ok;
}

Error finish_plan(KernelContext& context, AvgPoolState& state, std::uint32_t out_arg) {
  const Tensor& in = context.tensor(0);
  state.shape.assign(in);
  state.shape.sizes[in.rank - 2] = static_cast<std::int32_t>(state.axes[0].out);
  state.shape.sizes[in.rank - 1] = static_cast<std::int32_t>(state.axes[1].out);
  state.scratch = staged_bytes(in, state.lane) + output_bytes(context.tensor(out_arg), state.shape, state.lane);
  return Error::Ok;
}

template <std::uint32_t OutArg>
struct Pool {
  using State = AvgPoolState;
  static Error check_tensors(KernelContext& context, State& state, const char* signature) {
    WB_TRY(check_args(context, signature));
    WB_TRY(expect_floating(context, 0));
    WB_TRY(expect_same_dtype(context, 0, OutArg));
    state.lane = float_lane(context.tensor(0).dtype);
    return Error::Ok;
  }
  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(OutArg), state.shape.span());
  }
  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) { return run_lane<decltype(zero)>(context, state, OutArg); });
  }
};

struct AvgPool : Pool<7> {
  static Error check(KernelContext& context, State& state) { return check_tensors(context, state, "tlllbbIt"); }

  static Error plan(KernelContext& context, State& state) {
    WB_TRY(read_planes(context, 7, &state.planes));
    WB_TRY(read_window(context, {1, 2, 3, 0, 4}, state.axes));
    state.count_padding = context.arg(5).payload.as_bool;
    state.divisor = context.arg(6).is_none() ? 0 : context.arg(6).payload.as_int;
    if (!context.arg(6).is_none() && state.divisor == 0) {
      return context.fail(Error::InvalidArgument, "argument 6 (divisor_override): must not be 0");
    }
    return finish_plan(context, state, 7);
  }
};

struct AdaptiveAvgPool : Pool<2> {
  static Error check(KernelContext& context, State& state) { return check_tensors(context, state, "tlt"); }

  static Error plan(KernelContext& context, State& state) {
    WB_TRY(read_planes(context, 2, &state.planes));
    const Tensor& in = context.tensor(0);
    const std::span<const std::int64_t> sizes = context.arg(1).payload.int_list.get();
    state.adaptive = true;
    if (sizes.size() != 2) {
      return context.fail(Error::InvalidArgument, "argument 1 (output_size): expected 2 numbers, found %zu",
                          sizes.size());
    }
    for (std::size_t d = 0; d < 2; ++d) {
      state.axes[d].in = in.size(in.rank - 2 + static_cast<int>(d));
      state.axes[d].out = sizes[d];
      if (sizes[d] < 0 || sizes[d] > INT32_MAX || (state.axes[d].in == 0 && sizes[d] > 0)) {
        return context.fail(Error::InvalidArgument, "argument 1 (output_size): %lld from an input of size %lld",
                            static_cast<long long>(sizes[d]), static_cast<long long>(state.axes[d].in));
      }
    }
    return finish_plan(context, state, 2);
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(pooling_avg_pool, dense<AvgPool>("aten::avg_pool2d.out"),
           dense<AdaptiveAvgPool>("aten::_adaptive_avg_pool2d.out"))
