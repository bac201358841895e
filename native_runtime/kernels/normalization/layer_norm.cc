// native_layer_norm: each row of the last dimensions to mean 0 and deviation 1, then weight and bias.
#include "kernels/layout.h"
#include "kernels/normalization/arguments.h"
#include "kernels/normalization/row.h"

namespace wb::kernels::WB_ISA {
namespace {

constexpr std::uint32_t kInput = 0, kShape = 1, kWeight = 2, kBias = 3, kEps = 4, kOut = 5, kMean = 6, kRstd = 7;

struct LayerNormState : DenseState {
  Lane lane = Lane::F32;
  std::int64_t rows = 0, row = 1;
  Shape stats;
};

template <typename T>
Error run_lane(KernelContext& context, const LayerNormState& state) {
  Scratch scratch(context);
  const T* in = contiguous_input<T>(context.tensor(kInput), state.lane, scratch);
  const auto optional = [&](std::uint32_t arg) {
    return context.arg(arg).is_tensor() ? contiguous_input<T>(context.tensor(arg), state.lane, scratch) : nullptr;
  };
  const T* weight = optional(kWeight);
  const T* bias = optional(kBias);
  const ContiguousOutput<T> out(context.tensor(kOut), state.lane, scratch);
  const ContiguousOutput<T> mean(context.tensor(kMean), state.lane, scratch);
  const ContiguousOutput<T> rstd(context.tensor(kRstd), state.lane, scratch);
  const T eps = context.arg(kEps).scalar<T>();
  for (std::int64_t r = 0; r < state.rows; ++r) {
    const T* x = in + r * state.row;
    const Moments<T> moments = row_moments(x, state.row, eps);
    normalize_row(x, state.row, moments, weight, bias, out.data() + r * state.row);
    mean.data()[r] = moments.mean;
    rstd.data()[r] = moments.rstd;
  }
  out.store();
  mean.store();
  rstd.store();
  return Error::Ok;
}

struct LayerNorm {
  using State = LayerNormState;

  static Error check(KernelContext& context, State& state) {
    return check_norm(context, "tlTTfttt", {kInput, kWeight, kBias, kOut, kMean, kRstd}, &state.lane);
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& input = context.tensor(kInput);
    const std::span<const std::int64_t> normalized = context.arg(kShape).payload.int_list.get();
    const auto count = static_cast<int>(normalized.size());
    if (normalized.empty() || normalized.size() > input.rank) {
      return context.fail(Error::InvalidArgument, "argument 1 (normalized_shape): %d sizes for an input of rank %d",
                          count, input.rank);
    }
    const int first = input.rank - count;
    state.rows = state.row = 1;
    state.shape.assign(input);
    state.stats.assign(input);
    for (int d = 0; d < input.rank; ++d) {
      if (d < first) {
        state.rows *= input.sizes[d];
        continue;
      }
      if (normalized[static_cast<std::size_t>(d - first)] != input.sizes[d]) {
        return context.fail(Error::InvalidArgument, "argument 1 (normalized_shape): size %d of the input differs",
                            input.sizes[d]);
      }
      state.row *= input.sizes[d];
      state.stats.sizes[d] = 1;
    }
    state.scratch = contiguous_bytes(input, state.lane);
    for (const std::uint32_t arg : {kWeight, kBias}) {
      if (!context.arg(arg).is_tensor()) continue;
      const Tensor& tensor = context.tensor(arg);
      WB_TRY(expect_rank(context, arg, count));
      for (int d = 0; d < count; ++d) WB_TRY(expect_size(context, arg, d, input.sizes[first + d]));
      state.scratch += contiguous_bytes(tensor, state.lane);
    }
    state.scratch += contiguous_output_bytes(context.tensor(kOut), state.shape, state.lane);
    for (const std::uint32_t arg : {kMean, kRstd}) {
      state.scratch += contiguous_output_bytes(context.tensor(arg), state.stats, state.lane);
    }
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    WB_TRY(context.resize(context.tensor(kOut), state.shape.span()));
    WB_TRY(context.resize(context.tensor(kMean), state.stats.span()));
    return context.resize(context.tensor(kRstd), state.stats.span());
  }

  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) { return run_lane<decltype(zero)>(context, state); });
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(normalization_layer_norm, dense<LayerNorm>("aten::native_layer_norm.out"))
