// max_pool2d_with_indices: the first largest element of each window (NaN wins), and its place in the input plane.
#include <limits>

#include "kernels/pooling/window.h"

namespace wb::kernels::WB_ISA {
namespace {

constexpr std::uint32_t kOut = 6, kIndices = 7;

struct MaxPoolState : DenseState {
  Lane lane = Lane::F32;
  Planes planes;
  WindowAxis axes[2];
};

// Best value and place of each output of one row.
template <typename T>
struct RowBuffers {
  T* best;
  std::int32_t* place;
};

template <typename T>
[[gnu::always_inline]] inline void take(T value, std::int32_t place, T& best, std::int32_t& best_place) {
  const bool better = value > best || value != value;
  best = better ? value : best;
  best_place = better ? place : best_place;
}

// Outputs [first, last) of a row against one tap; Step is the distance of the inputs if it is known, else 0.
template <typename T, int Step>
void take_row(const T* from, std::int64_t step, std::int32_t place, std::int32_t place_step, std::int64_t first,
              std::int64_t last, const RowBuffers<T>& to) {
  const std::int64_t distance = Step != 0 ? Step : step;
  T* const best = to.best;
  std::int32_t* const places = to.place;
#pragma GCC ivdep
  for (std::int64_t x = first; x < last; ++x) {
    take(from[x * distance], place + static_cast<std::int32_t>(x) * place_step, best[x], places[x]);
  }
}

template <typename T>
void pool_row(const MaxPoolState& state, const T* plane, const PoolStrides& in, std::int64_t oy,
              const RowBuffers<T>& to) {
  const WindowAxis& ya = state.axes[0];
  const WindowAxis& xa = state.axes[1];
  std::fill(to.best, to.best + xa.out,
            std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : -std::numeric_limits<T>::infinity());
  const std::int64_t top = oy * ya.stride - ya.padding;
  std::int64_t first_y = top;
  while (first_y < 0) first_y += ya.dilation;
  for (std::int64_t x = 0; x < xa.out; ++x) {  // where all elements are the lowest, the first is the largest
    std::int64_t first_x = x * xa.stride - xa.padding;
    if (first_x < 0) first_x += (-first_x + xa.dilation - 1) / xa.dilation * xa.dilation;
    to.place[x] = static_cast<std::int32_t>(first_y * xa.in + first_x);
  }
  for (std::int64_t ky = 0; ky < ya.kernel; ++ky) {
    const std::int64_t y = top + ky * ya.dilation;
    if (y < 0 || y >= ya.in) continue;
    for (std::int64_t kx = 0; kx < xa.kernel; ++kx) {
      const std::int64_t start = kx * xa.dilation - xa.padding;  // column that output 0 reads
      const std::int64_t first = start >= 0 ? 0 : (-start + xa.stride - 1) / xa.stride;
      const std::int64_t last = start >= xa.in ? 0 : std::min(xa.out, (xa.in - 1 - start) / xa.stride + 1);
      const T* from = plane + y * in.h + start * in.w;
      const std::int64_t step = xa.stride * in.w;
      const auto place = static_cast<std::int32_t>(y * xa.in + start);
      const auto place_step = static_cast<std::int32_t>(xa.stride);
      if (step == 1) {
        take_row<T, 1>(from, step, place, place_step, first, last, to);
      } else if (step == 2) {
        take_row<T, 2>(from, step, place, place_step, first, last, to);
      } else {
        take_row<T, 0>(from, step, place, place_step, first, last, to);
      }
    }
  }
}

template <typename T>
Error run_lane(KernelContext& context, const MaxPoolState& state) {
  Scratch scratch(context);
  Tensor& result = context.tensor(kOut);
  Tensor& indices = context.tensor(kIndices);
  const T* data = staged_input<T>(context.tensor(0), state.lane, scratch);
  const StagedOutput<T> out(result, state.lane, scratch);
  const auto width = static_cast<std::size_t>(state.axes[1].out);
  const RowBuffers<T> row{scratch.take<T>(width), scratch.take<std::int32_t>(width)};
  const PoolStrides in(context.tensor(0));
  const PoolStrides to(result);
  const PoolStrides index_to(indices);
  auto* places = indices.mutable_data<std::int64_t>();
  for (std::int64_t n = 0; n < state.planes.batch; ++n) {
    for (std::int64_t c = 0; c < state.planes.channels; ++c) {
      for (std::int64_t oy = 0; oy < state.axes[0].out; ++oy) {
        pool_row(state, data + n * in.n + c * in.c, in, oy, row);
        T* target = out.data() + n * to.n + c * to.c + oy * to.h;
        std::int64_t* index = places + n * index_to.n + c * index_to.c + oy * index_to.h;
        for (std::int64_t x = 0; x < state.axes[1].out; ++x) {
          target[x * to.w] = row.best[x];
          index[x * index_to.w] = row.place[x];
        }
      }
    }
  }
  out.store();
  return Error::Ok;
}

struct MaxPool {
  using State = MaxPoolState;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tllllbtt"));
    WB_TRY(expect_computable(context, 0));
    state.lane = natural_lane(context.tensor(0).dtype);
    if (state.lane == Lane::Bool) return context.fail(Error::NotSupported, "argument 0: no kernel for dtype bool");
    WB_TRY(expect_same_dtype(context, 0, kOut));
    return expect_dtype(context, kIndices, ScalarType::Long);
  }

  static Error plan(KernelContext& context, State& state) {
    WB_TRY(read_planes(context, kOut, &state.planes));
    WB_TRY(expect_rank(context, kIndices, context.tensor(0).rank));
    WB_TRY(read_window(context, {1, 2, 3, 4, 5}, state.axes));
    if (state.axes[0].in * state.axes[1].in > INT32_MAX) {
      return context.fail(Error::NotSupported, "argument 0: planes of more than 2^31 elements");
    }
    const Tensor& in = context.tensor(0);
    state.shape.assign(in);
    state.shape.sizes[in.rank - 2] = static_cast<std::int32_t>(state.axes[0].out);
    state.shape.sizes[in.rank - 1] = static_cast<std::int32_t>(state.axes[1].out);
    const auto width = static_cast<std::size_t>(state.axes[1].out);
    state.scratch = staged_bytes(in, state.lane) + output_bytes(context.tensor(kOut), state.shape, state.lane) +
                    round_scratch(width * lane_size(state.lane)) + round_scratch(width * sizeof(std::int32_t));
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    WB_TRY(context.resize(context.tensor(kOut), state.shape.span()));
    return context.resize(context.tensor(kIndices), state.shape.span());
  }

  static Error run(KernelContext& context, State& state) {
    if (state.lane == Lane::I64) return run_lane<std::int64_t>(context, state);
    return for_float_lane(state.lane, [&](auto zero) { return run_lane<decltype(zero)>(context, state); });
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(pooling_max_pool, dense<MaxPool>("aten::max_pool2d_with_indices.out"))
