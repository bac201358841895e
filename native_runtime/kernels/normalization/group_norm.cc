// native_group_norm: the channels of each group together to mean 0 and deviation 1, then weight and bias by channel.
#include "kernels/layout.h"
#include "kernels/normalization/arguments.h"
#include "kernels/normalization/row.h"

namespace wb::kernels::WB_ISA {
namespace {

constexpr std::uint32_t kInput = 0, kWeight = 1, kBias = 2, kN = 3, kC = 4, kArea = 5, kGroups = 6, kEps = 7, kOut = 8,
                        kMean = 9, kRstd = 10;

struct GroupNormState : DenseState {
  Lane lane = Lane::F32;
  std::int64_t batch = 0, channels = 0, area = 1, groups = 1;
  Shape stats;
};

template <typename T>
Error run_lane(KernelContext& context, const GroupNormState& state) {
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
  const std::int64_t channels = state.channels / state.groups;
  for (std::int64_t r = 0; r < state.batch * state.groups; ++r) {
    const T* x = in + r * channels * state.area;
    const Moments<T> moments = row_moments(x, channels * state.area, context.arg(kEps).scalar<T>());
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t channel = r % state.groups * channels + c;
      const T scale = moments.rstd * (weight == nullptr ? T{1} : weight[channel]);
      const T shift = (bias == nullptr ? T{0} : bias[channel]) - moments.mean * scale;
      scale_row(x + c * state.area, state.area, scale, shift, out.data() + (r * channels + c) * state.area);
    }
    mean.data()[r] = moments.mean;
    rstd.data()[r] = moments.rstd;
  }
  out.store();
  mean.store();
  rstd.store();
  return Error::Ok;
}

struct GroupNorm {
  using State = GroupNormState;

  static Error check(KernelContext& context, State& state) {
    return check_norm(context, "tTTiiiifttt", {kInput, kWeight, kBias, kOut, kMean, kRstd}, &state.lane);
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& input = context.tensor(kInput);
    if (input.rank < 2) return context.fail(Error::InvalidArgument, "argument 0 (input): expected rank 2 or more");
    state.batch = input.size(0);
    state.channels = input.size(1);
    state.area = 1;
    for (int d = 2; d < input.rank; ++d) state.area *= input.sizes[d];
    state.groups = context.arg(kGroups).payload.as_int;
    const bool fits = context.arg(kN).payload.as_int == state.batch &&
                      context.arg(kC).payload.as_int == state.channels &&
                      context.arg(kArea).payload.as_int == state.area;
    if (!fits || state.groups < 1 || state.channels % state.groups != 0 || state.groups > INT32_MAX) {
      return context.fail(Error::InvalidArgument, "N, C, HxW or the %lld groups do not go with the input's sizes",
                          static_cast<long long>(state.groups));
    }
    state.shape.assign(input);
    state.stats.rank = 2;
    state.stats.sizes[0] = input.sizes[0];
    state.stats.sizes[1] = static_cast<std::int32_t>(state.groups);
    state.scratch = contiguous_bytes(input, state.lane);
    for (const std::uint32_t arg : {kWeight, kBias}) {
      if (!context.arg(arg).is_tensor()) continue;
      WB_TRY(expect_vector(context, arg, state.channels));
      state.scratch += contiguous_bytes(context.tensor(arg), state.lane);
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

WB_KERNELS(normalization_group_norm, dense<GroupNorm>("aten::native_group_norm.out"))
