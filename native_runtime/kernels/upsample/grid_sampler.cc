// grid_sampler_2d: out[n, c, y, x] = the input at the place grid[n, y, x], in coordinates from -1 to 1.
#include <cmath>

#include "kernels/pooling/window.h"

namespace wb::kernels::WB_ISA {
namespace {

enum Mode : std::uint8_t { kBilinear = 0, kNearest = 1 };
enum Padding : std::uint8_t { kZeros = 0, kBorder = 1, kReflection = 2 };

struct GridState : DenseState {
  Lane lane = Lane::F32;
  Mode mode = kBilinear;
  Padding padding = kZeros;
  bool align_corners = false;
};

// Folds x into [low, high] (doubled, so that half coordinates are whole numbers).
template <typename T>
T reflect(T x, std::int64_t twice_low, std::int64_t twice_high) {
  if (twice_low == twice_high) return T{0};
  const T low = static_cast<T>(twice_low) / 2;
  const T span = static_cast<T>(twice_high - twice_low) / 2;
  const T distance = std::fabs(x - low);
  const T rest = std::fmod(distance, span);
  const bool even = std::fmod(std::floor(distance / span), T{2}) == T{0};
  return even ? rest + low : span - rest + low;
}

// A coordinate in elements of a dimension of `size`.
template <typename T>
T place_of(const GridState& state, T x, std::int64_t size) {
  const auto count = static_cast<T>(size);
  T place = state.align_corners ? (x + T{1}) / T{2} * (count - T{1}) : ((x + T{1}) * count - T{1}) / T{2};
  if (state.padding == kReflection) {
    place = state.align_corners ? reflect(place, 0, 2 * (size - 1)) : reflect(place, -1, 2 * size - 1);
  }
  if (state.padding != kZeros) place = std::min(count - T{1}, std::max(place, T{0}));
  return place == place && std::fabs(place) < T{1e9F} ? place : T{-100};  // NaN and far away: outside
}

template <typename T>
struct Source {
  const T* data;
  std::int64_t h, w, step_h, step_w;
  [[nodiscard]] T at(std::int64_t y, std::int64_t x) const {
    return y < 0 || y >= h || x < 0 || x >= w ? T{0} : data[y * step_h + x * step_w];
  }
};

template <typename T>
T sample(const GridState& state, const Source<T>& source, T y, T x) {
  if (state.mode == kNearest) {
    return source.at(static_cast<std::int64_t>(std::nearbyint(y)), static_cast<std::int64_t>(std::nearbyint(x)));
  }
  const T floor_y = std::floor(y);
  const T floor_x = std::floor(x);
  const auto top = static_cast<std::int64_t>(floor_y);
  const auto left = static_cast<std::int64_t>(floor_x);
  const T wy = y - floor_y;
  const T wx = x - floor_x;
  return (source.at(top, left) * (T{1} - wx) + source.at(top, left + 1) * wx) * (T{1} - wy) +
         (source.at(top + 1, left) * (T{1} - wx) + source.at(top + 1, left + 1) * wx) * wy;
}

template <typename T>
Error run_lane(KernelContext& context, const GridState& state) {
  Scratch scratch(context);
  const Tensor& input = context.tensor(0);
  const Tensor& grid = context.tensor(1);
  Tensor& result = context.tensor(5);
  const T* data = staged_input<T>(input, state.lane, scratch);
  const T* places = staged_input<T>(grid, state.lane, scratch);
  const StagedOutput<T> out(result, state.lane, scratch);
  const PoolStrides in(input);
  const PoolStrides to(result);
  for (std::int64_t n = 0; n < result.size(0); ++n) {
    for (std::int64_t y = 0; y < result.size(2); ++y) {
      for (std::int64_t x = 0; x < result.size(3); ++x) {
        const T* place = places + n * grid.strides[0] + y * grid.strides[1] + x * grid.strides[2];
        const T px = place_of(state, place[0], input.size(3));
        const T py = place_of(state, place[grid.strides[3]], input.size(2));
        for (std::int64_t c = 0; c < result.size(1); ++c) {
          const Source<T> source{data + n * in.n + c * in.c, input.size(2), input.size(3), in.h, in.w};
          out.data()[n * to.n + c * to.c + y * to.h + x * to.w] = sample(state, source, py, px);
        }
      }
    }
  }
  out.store();
  return Error::Ok;
}

struct GridSampler {
  using State = GridState;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "ttiibt"));
    WB_TRY(expect_floating(context, 0));
    for (const std::uint32_t arg : {1U, 5U}) WB_TRY(expect_same_dtype(context, 0, arg));
    for (const std::uint32_t arg : {0U, 1U, 5U}) WB_TRY(expect_rank(context, arg, 4));
    state.lane = float_lane(context.tensor(0).dtype);
    return Error::Ok;
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& input = context.tensor(0);
    const Tensor& grid = context.tensor(1);
    const std::int64_t mode = context.arg(2).payload.as_int;
    const std::int64_t padding = context.arg(3).payload.as_int;
    if (mode < 0 || mode > 1 || padding < 0 || padding > 2) {
      return context.fail(Error::NotSupported, "interpolation mode %lld with padding mode %lld",
                          static_cast<long long>(mode), static_cast<long long>(padding));
    }
    state.mode = static_cast<Mode>(mode);
    state.padding = static_cast<Padding>(padding);
    state.align_corners = context.arg(4).payload.as_bool;
    WB_TRY(expect_size(context, 1, 0, input.size(0)));
    WB_TRY(expect_size(context, 1, 3, 2));
    if (input.size(2) < 1 || input.size(3) < 1) {
      return context.fail(Error::InvalidArgument, "argument 0 (input): empty planes");
    }
    state.shape.assign(input);
    state.shape.sizes[2] = grid.sizes[1];
    state.shape.sizes[3] = grid.sizes[2];
    state.scratch = staged_bytes(input, state.lane) + staged_bytes(grid, state.lane) +
                    output_bytes(context.tensor(5), state.shape, state.lane);
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(5), state.shape.span());
  }

  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) { return run_lane<decltype(zero)>(context, state); });
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(upsample_grid_sampler, dense<GridSampler>("aten::grid_sampler_2d.out"))
