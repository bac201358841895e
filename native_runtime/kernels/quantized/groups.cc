// quantize and dequantize with a scale (and zero point) for each group of neighbours in the rows of a matrix:
// q = clamp(round(x / scale + zero_point), quant_min, quant_max); x = (q - zero_point) scale.
#include <cmath>

#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {
namespace {

// Arguments: input, scales, zero points (of dequantizing: or none), quant_min, quant_max, dtype, group size,
// (of dequantizing: output dtype), out.
template <bool kQuantize>
struct Groups {
  struct State {
    bool ready = false;
    std::int64_t group = 0;
  };
  static constexpr std::uint32_t kOut = kQuantize ? 7 : 8;

  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, kQuantize ? "tttii*it" : "ttTii*i*t"));
    if (!is_floating(context.tensor(1).dtype)) {
      return context.fail(Error::InvalidType, "argument 1 (scales): expected floating point, found %s",
                          name_of(context.tensor(1).dtype));
    }
    if (is_floating(context.tensor(0).dtype) != kQuantize || is_floating(context.tensor(kOut).dtype) == kQuantize) {
      return context.fail(Error::InvalidType, "one of input and output holds integers, the other numbers: found %s, %s",
                          name_of(context.tensor(0).dtype), name_of(context.tensor(kOut).dtype));
    }
    if (context.optional_tensor(2) != nullptr) WB_TRY(expect_computable(context, 2));
    WB_TRY(expect_computable(context, 0));
    return expect_computable(context, kOut);
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& input = context.tensor(0);
    const Tensor& scales = context.tensor(1);
    const Tensor* zeros = context.optional_tensor(2);
    Tensor& out = context.tensor(kOut);
    if (input.rank != 2) {
      return context.fail(Error::InvalidArgument, "argument 0: expected 2 dimensions, found %d",
                          static_cast<int>(input.rank));
    }
    const std::int64_t width = input.sizes[1];
    state.group = context.arg(6).scalar<std::int64_t>();
    // One scale for rows that are shorter than a group.
    if (state.group > width && scales.rank > 0 && scales.sizes[scales.rank - 1] == 1) state.group = width;
    if (state.group < 1 || width % state.group != 0) {
      return context.fail(Error::InvalidArgument, "argument 6: groups of %lld in rows of %lld",
                          static_cast<long long>(state.group), static_cast<long long>(width));
    }
    const std::int64_t groups = input.numel() / state.group;
    if (scales.numel() != groups || (zeros != nullptr && zeros->numel() != groups)) {
      return context.fail(Error::InvalidArgument, "arguments 1 and 2: expected %lld scales and zero points, found %lld",
                          static_cast<long long>(groups), static_cast<long long>(scales.numel()));
    }
    Shape shape;
    shape.assign(input);
    WB_TRY(context.resize(out, shape.span()));
    const bool contiguous = input.is_contiguous() && scales.is_contiguous() && out.is_contiguous() &&
                            (zeros == nullptr || zeros->is_contiguous());
    return contiguous ? Error::Ok : context.fail(Error::NotSupported, "contiguous tensors are needed");
  }

  static float at(const Tensor& tensor, std::int64_t i) {
    float value = 0;
    find_load(tensor.dtype, Lane::F32)(
        &value, static_cast<const std::byte*>(tensor.data) + i * static_cast<std::int64_t>(element_size(tensor.dtype)),
        1, 1);
    return value;
  }

  static Error run(KernelContext& context, State& state) {
    const Tensor& input = context.tensor(0);
    const Tensor& scales = context.tensor(1);
    const Tensor* zeros = context.optional_tensor(2);
    const Tensor& out = context.tensor(kOut);
    const LoadFunction load = find_load(input.dtype, Lane::F32);
    const StoreFunction store = find_store(out.dtype, Lane::F32);
    const auto given = static_cast<std::int64_t>(element_size(input.dtype));
    const auto made = static_cast<std::int64_t>(element_size(out.dtype));
    const auto low = static_cast<float>(context.arg(3).scalar<double>());
    const auto high = static_cast<float>(context.arg(4).scalar<double>());
    const std::int64_t groups = scales.numel();
    for (std::int64_t g = 0; g < groups; ++g) {
      const float scale = at(scales, g);
      const float zero = zeros == nullptr ? 0.0F : at(*zeros, g);
      for (std::int64_t begin = 0; begin < state.group; begin += kBlock) {
        const std::int64_t n = state.group - begin < kBlock ? state.group - begin : kBlock;
        const std::int64_t first = g * state.group + begin;
        float block[kBlock];
        load(block, static_cast<const std::byte*>(input.data) + first * given, 1, n);
        convert(block, n, scale, zero, low, high);
        store(static_cast<std::byte*>(out.data) + first * made, 1, block, n);
      }
    }
    return Error::Ok;
  }

  static void convert(float* block, std::int64_t n, float scale, float zero, float low, float high) {
    if constexpr (kQuantize) {
      const float inverse = 1.0F / scale;
      for (std::int64_t i = 0; i < n; ++i) {
        const float q = std::nearbyint(block[i] * inverse + zero);
        block[i] = q < low ? low : q > high ? high : q;
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i) block[i] = (block[i] - zero) * scale;
    }
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(quantized_groups, planned<Groups<true>>("quantized_decomposed::quantize_per_channel_group.out"),
           planned<Groups<false>>("quantized_decomposed::dequantize_per_channel_group.out"))
