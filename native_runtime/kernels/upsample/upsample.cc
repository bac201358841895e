// upsample_nearest2d and upsample_bilinear2d of rank 4, in any memory order.
#include <cmath>

#include "kernels/pooling/window.h"

namespace wb::kernels::WB_ISA {
namespace {

// Where the outputs along one dimension come from: input low with 1 - weight, input high with weight.
template <typename T>
struct Sources {
  std::int64_t* low;
  std::int64_t* high;
  T* weight;
};

struct UpsampleState : DenseState {
  Lane lane = Lane::F32;
  Planes planes;
  std::int64_t in[2] = {}, out[2] = {};
  double scale[2] = {};  // given factors; 0: from the sizes
  bool align_corners = false;
};

// Distance in the input of neighbouring outputs, in the arithmetic of the lane.
template <typename T>
T step_of(const UpsampleState& state, int d) {
  if (state.align_corners) {
    return state.out[d] > 1 ? static_cast<T>(state.in[d] - 1) / static_cast<T>(state.out[d] - 1) : T{0};
  }
  if (state.scale[d] > 0) return static_cast<T>(1.0 / state.scale[d]);
  return static_cast<T>(state.in[d]) / static_cast<T>(state.out[d]);
}

template <typename T>
void find_linear(const UpsampleState& state, int d, const Sources<T>& to) {
  const T step = step_of<T>(state, d);
  const std::int64_t last = state.in[d] - 1;
  for (std::int64_t o = 0; o < state.out[d]; ++o) {
    const T half = (static_cast<T>(o) + T{0.5}) * step - T{0.5};
    const T place = state.align_corners ? static_cast<T>(o) * step : (half < T{0} ? T{0} : half);
    const std::int64_t low = std::min(static_cast<std::int64_t>(std::min(place, static_cast<T>(last))), last);
    to.low[o] = low;
    to.high[o] = std::min(low + 1, last);
    to.weight[o] = std::clamp(place - static_cast<T>(low), T{0}, T{1});
  }
}

template <typename T>
void find_nearest(const UpsampleState& state, int d, const Sources<T>& to) {
  // PyTorch computes these places in float whatever the dtype, and not at all for the same and for twice the size,
  // whatever the scale.
  const auto step = state.scale[d] > 0 ? static_cast<float>(1.0 / state.scale[d])
                                       : static_cast<float>(state.in[d]) / static_cast<float>(state.out[d]);
  const std::int64_t last = state.in[d] - 1;
  const auto place_of = [&](std::int64_t o) {
    if (state.out[d] == state.in[d]) return o;
    if (state.out[d] == 2 * state.in[d]) return o / 2;
    const float place = std::floor(static_cast<float>(o) * step);
    return place < static_cast<float>(last) ? static_cast<std::int64_t>(place) : last;
  };
  for (std::int64_t o = 0; o < state.out[d]; ++o) {
    to.low[o] = to.high[o] = place_of(o);
    to.weight[o] = T{0};
  }
}

template <typename T, bool Linear>
void plane(const UpsampleState& state, const Sources<T>& ys, const Sources<T>& xs, const T* from, const PoolStrides& in,
           T* to, const PoolStrides& out) {
  for (std::int64_t y = 0; y < state.out[0]; ++y) {
    const T* low = from + ys.low[y] * in.h;
    const T* high = from + ys.high[y] * in.h;
    const T wy = ys.weight[y];
    for (std::int64_t x = 0; x < state.out[1]; ++x) {
      T& target = to[y * out.h + x * out.w];
      const std::int64_t left = xs.low[x] * in.w;
      if constexpr (!Linear) {
        target = low[left];
        continue;
      }
      const std::int64_t right = xs.high[x] * in.w;
      const T wx = xs.weight[x];
      const T top = (T{1} - wx) * low[left] + wx * low[right];
      const T bottom = (T{1} - wx) * high[left] + wx * high[right];
      target = (T{1} - wy) * top + wy * bottom;
    }
  }
}

template <typename T, bool Linear>
Error run_lane(KernelContext& context, const UpsampleState& state) {
  Scratch scratch(context);
  Tensor& result = context.tensor(context.count() - 1);
  const T* data = staged_input<T>(context.tensor(0), state.lane, scratch);
  const StagedOutput<T> out(result, state.lane, scratch);
  Sources<T> sources[2];
  for (int d = 0; d < 2; ++d) {
    const auto count = static_cast<std::size_t>(state.out[d]);
    sources[d] = {scratch.take<std::int64_t>(count), scratch.take<std::int64_t>(count), scratch.take<T>(count)};
    if constexpr (Linear) {
      find_linear(state, d, sources[d]);
    } else {
      find_nearest(state, d, sources[d]);
    }
  }
  const PoolStrides in(context.tensor(0));
  const PoolStrides to(result);
  for (std::int64_t n = 0; n < state.planes.batch; ++n) {
    for (std::int64_t c = 0; c < state.planes.channels; ++c) {
      plane<T, Linear>(state, sources[0], sources[1], data + n * in.n + c * in.c, in, out.data() + n * to.n + c * to.c,
                       to);
    }
  }
  out.store();
  return Error::Ok;
}

// Arguments: input, output_size or None, (align_corners,) scale factors or None, out.
template <bool Linear>
struct Upsample {
  using State = UpsampleState;
  static constexpr std::uint32_t kScales = Linear ? 3 : 2;
  static constexpr std::uint32_t kOut = kScales + 1;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, Linear ? "tMbdt" : "tMdt"));
    WB_TRY(expect_floating(context, 0));
    WB_TRY(expect_same_dtype(context, 0, kOut));
    WB_TRY(expect_rank(context, 0, 4));
    state.lane = float_lane(context.tensor(0).dtype);
    return Error::Ok;
  }

  static Error plan(KernelContext& context, State& state) {
    WB_TRY(read_planes(context, kOut, &state.planes));
    const Tensor& in = context.tensor(0);
    const bool by_size = !context.arg(1).is_none();
    const bool by_scale = !context.arg(kScales).is_none();
    const auto sizes = by_size ? context.arg(1).payload.int_list.get() : std::span<const std::int64_t>();
    const auto scales = by_scale ? context.arg(kScales).payload.double_list.get() : std::span<const double>();
    if (by_size == by_scale || (by_size && sizes.size() != 2) || (by_scale && scales.size() != 2)) {
      return context.fail(Error::InvalidArgument, "expected two output sizes or two scale factors");
    }
    if constexpr (Linear) state.align_corners = context.arg(2).payload.as_bool;
    state.shape.assign(in);
    state.scratch = 0;
    for (int d = 0; d < 2; ++d) {
      const auto at = static_cast<std::size_t>(d);
      state.in[d] = in.size(d + 2);
      state.scale[d] = by_scale ? scales[at] : 0;
      const double wanted = by_scale ? static_cast<double>(state.in[d]) * scales[at] : static_cast<double>(sizes[at]);
      if (!(wanted >= 1 && wanted <= INT32_MAX) || state.in[d] < 1) {
        return context.fail(Error::InvalidArgument, "an output of size %g from an input of size %lld", wanted,
                            static_cast<long long>(state.in[d]));
      }
      state.out[d] = static_cast<std::int64_t>(wanted);
      state.shape.sizes[d + 2] = static_cast<std::int32_t>(state.out[d]);
      state.scratch += 3 * round_scratch(static_cast<std::size_t>(state.out[d]) * 8);
    }
    state.scratch += staged_bytes(in, state.lane) + output_bytes(context.tensor(kOut), state.shape, state.lane);
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(kOut), state.shape.span());
  }

  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) { return run_lane<decltype(zero), Linear>(context, state); });
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(upsample_upsample, dense<Upsample<true>>("aten::upsample_bilinear2d.vec_out"),
           dense<Upsample<false>>("aten::upsample_nearest2d.vec_out"))
