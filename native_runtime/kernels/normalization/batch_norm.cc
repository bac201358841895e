// Batch normalization, with given statistics (inference) or those of the batch (training).
//
// out = (x - mean[c]) / sqrt(var[c] + eps) weight[c] + bias[c], as one multiply-add by channel.
#include <cmath>

#include "kernels/layout.h"
#include "kernels/normalization/row.h"

namespace wb::kernels::WB_ISA {
namespace {

enum class Variant : std::uint8_t {
  Inference,  // input, weight, bias, running_mean, running_var, momentum, eps, outs
  Legit,      // input, weight, bias, running_mean, running_var, training, momentum, eps, outs
  NoStats,    // input, weight, bias, training, momentum, eps, outs
};

struct Places {
  const char* signature;
  std::uint32_t mean, var, training, momentum, eps, out;  // 0: there is none
};

constexpr Places places_of(Variant variant) {
  switch (variant) {
    case Variant::Inference: return {"tTTttffttt", 3, 4, 0, 5, 6, 7};
    case Variant::Legit: return {"tTTttbffttt", 3, 4, 5, 6, 7, 8};
    case Variant::NoStats: break;
  }
  return {"tTTbffttt", 0, 0, 3, 4, 5, 6};
}

struct BatchNormState : DenseState {
  Lane lane = Lane::F32;
  std::int64_t channels = 0;
  bool training = false;
  Shape stats;
};

// What one channel needs, in arrays of `channels`.
template <typename T>
struct Channels {
  T* scale;
  T* shift;
  T* mean;
  T* rstd;
};

template <typename T>
void batch_moments(const T* x, const AxisView& view, T eps, Channels<T>& to, T* variance) {
  const auto count = static_cast<T>(view.outer * view.inner);
  for (std::int64_t c = 0; c < view.size; ++c) {
    T sum{0};
    T squares{0};
    for (std::int64_t o = 0; o < view.outer; ++o) sum += row_sum(x + (o * view.size + c) * view.inner, view.inner);
    const T mean = sum / count;
    for (std::int64_t o = 0; o < view.outer; ++o) {
      squares += row_squares(x + (o * view.size + c) * view.inner, view.inner, mean);
    }
    to.mean[c] = mean;
    to.rstd[c] = T{1} / std::sqrt(squares / count + eps);
    variance[c] = squares / (count - T{1});
  }
}

template <typename T>
void apply(const T* x, const AxisView& view, const Channels<T>& channels, T* y) {
  const std::int64_t planes = view.outer * view.size;
  if (view.inner == 1) {
    for (std::int64_t o = 0; o < view.outer; ++o) {
      const std::int64_t at = o * view.size;
#pragma GCC ivdep
      for (std::int64_t c = 0; c < view.size; ++c) y[at + c] = x[at + c] * channels.scale[c] + channels.shift[c];
    }
    return;
  }
  for (std::int64_t p = 0; p < planes; ++p) {
    const std::int64_t c = p % view.size;
    scale_row(x + p * view.inner, view.inner, channels.scale[c], channels.shift[c], y + p * view.inner);
  }
}

// running = (1 - momentum) running + momentum batch
template <typename T>
void update(Tensor& running, Lane lane, const T* batch, T momentum) {
  const LoadFunction load_one = find_load(running.dtype, lane);
  const StoreFunction store_one = find_store(running.dtype, lane);
  const std::size_t size = element_size(running.dtype);
  for (std::int64_t c = 0; c < running.numel(); ++c) {
    std::byte* at = running.mutable_data<std::byte>() + static_cast<std::size_t>(c) * size;
    T value;
    load_one(&value, at, 1, 1);
    value = (T{1} - momentum) * value + momentum * batch[c];
    store_one(at, 1, &value, 1);
  }
}

template <typename T>
Error run_lane(KernelContext& context, const BatchNormState& state, const Places& at) {
  Scratch scratch(context);
  Tensor& result = context.tensor(at.out);
  const auto count = static_cast<std::size_t>(state.channels);
  const T* in = input_like<T>(context.tensor(0), result, state.lane, scratch);
  const auto optional = [&](std::uint32_t arg) {
    return arg != 0 && context.arg(arg).is_tensor() ? staged_input<T>(context.tensor(arg), state.lane, scratch)
                                                    : nullptr;
  };
  const T* weight = optional(1);
  const T* bias = optional(2);
  const T* mean = optional(at.mean);
  const T* var = optional(at.var);
  const StagedOutput<T> out(result, state.lane, scratch);
  Channels<T> channels{scratch.take<T>(count), scratch.take<T>(count), scratch.take<T>(count), scratch.take<T>(count)};
  const T eps = context.arg(at.eps).scalar<T>();
  const AxisView view(result, 1);
  if (state.training) {
    T* const variance = channels.scale;  // until the scales are known
    batch_moments(in, view, eps, channels, variance);
    if (at.mean != 0) {
      const T momentum = context.arg(at.momentum).scalar<T>();
      update(context.tensor(at.mean), state.lane, channels.mean, momentum);
      update(context.tensor(at.var), state.lane, variance, momentum);
    }
  } else {
    for (std::size_t c = 0; c < count; ++c) {
      channels.mean[c] = mean[c];
      channels.rstd[c] = T{1} / std::sqrt(var[c] + eps);
    }
  }
  for (std::size_t c = 0; c < count; ++c) {
    channels.scale[c] = channels.rstd[c] * (weight == nullptr ? T{1} : weight[c]);
    channels.shift[c] = (bias == nullptr ? T{0} : bias[c]) - channels.mean[c] * channels.scale[c];
  }
  if (result.numel() != 0) apply(in, view, channels, out.data());
  out.store();
  if (state.stats.sizes[0] != 0) {
    const T* sources[2] = {channels.mean, channels.rstd};
    for (std::uint32_t k = 0; k < 2; ++k) {
      Tensor& save = context.tensor(at.out + 1 + k);
      find_store(save.dtype, state.lane)(save.data, 1, sources[k], state.channels);
    }
  }
  return Error::Ok;
}

template <Variant V>
struct BatchNorm {
  using State = BatchNormState;
  static constexpr Places kPlaces = places_of(V);

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, kPlaces.signature));
    for (std::uint32_t i = 0; i < context.count(); ++i) {
      if (context.arg(i).is_tensor()) WB_TRY(expect_floating(context, i));
    }
    WB_TRY(expect_same_dtype(context, 0, kPlaces.out));
    WB_TRY(expect_rank(context, kPlaces.out, context.tensor(0).rank));
    WB_TRY(expect_rank(context, kPlaces.out + 1, 1));
    WB_TRY(expect_rank(context, kPlaces.out + 2, 1));
    state.lane = float_lane(context.tensor(0).dtype);
    return Error::Ok;
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& input = context.tensor(0);
    if (input.rank < 2) return context.fail(Error::InvalidArgument, "argument 0 (input): expected rank 2 or more");
    state.channels = input.size(1);
    state.training = kPlaces.training != 0 && context.arg(kPlaces.training).payload.as_bool;
    if (V == Variant::NoStats && !state.training) {
      return context.fail(Error::NotSupported, "argument 3 (training): there are no statistics to use");
    }
    state.shape.assign(input);
    // Inference saves no statistics: empty outputs, except those of _native_batch_norm_legit in eager programs.
    state.stats.rank = 1;
    state.stats.sizes[0] = state.training ? input.sizes[1] : 0;
    state.scratch = like_bytes(input, state.lane) + output_bytes(context.tensor(kPlaces.out), state.shape, state.lane) +
                    4 * round_scratch(static_cast<std::size_t>(state.channels) * lane_size(state.lane));
    for (const std::uint32_t arg : {std::uint32_t{1}, std::uint32_t{2}, kPlaces.mean, kPlaces.var}) {
      if (arg == 0 || !context.arg(arg).is_tensor()) continue;
      WB_TRY(expect_vector(context, arg, state.channels));
      state.scratch += staged_bytes(context.tensor(arg), state.lane);
    }
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    WB_TRY(context.resize(context.tensor(kPlaces.out), state.shape.span()));
    WB_TRY(context.resize(context.tensor(kPlaces.out + 1), state.stats.span()));
    return context.resize(context.tensor(kPlaces.out + 2), state.stats.span());
  }

  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) { return run_lane<decltype(zero)>(context, state, kPlaces); });
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(normalization_batch_norm,
           dense<BatchNorm<Variant::Inference>>("aten::_native_batch_norm_legit_no_training.out"),
           dense<BatchNorm<Variant::Legit>>("aten::_native_batch_norm_legit.out"),
           dense<BatchNorm<Variant::NoStats>>("aten::_native_batch_norm_legit.no_stats_out"))
