// choose_qparams: scale and zero point from the range of the values.
#include <cmath>
#include <limits>

#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {
namespace {

struct Range {
  float low = std::numeric_limits<float>::infinity();
  float high = -std::numeric_limits<float>::infinity();
};

void widen(Range& range, const Tensor& tensor, std::int64_t begin, std::int64_t n) {
  const LoadFunction load = find_load(tensor.dtype, Lane::F32);
  const auto element = static_cast<std::int64_t>(element_size(tensor.dtype));
  float block[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    load(block, static_cast<const std::byte*>(tensor.data) + (begin + i) * element, 1, count);
    for (std::int64_t j = 0; j < count; ++j) {
      range.low = block[j] < range.low ? block[j] : range.low;
      range.high = block[j] > range.high ? block[j] : range.high;
    }
  }
}

float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

Error check_outputs(KernelContext& context, std::uint32_t scale, std::uint32_t zero) {
  if (!is_floating(context.tensor(0).dtype)) {
    return context.fail(Error::InvalidType, "argument 0: expected floating point, found %s",
                        name_of(context.tensor(0).dtype));
  }
  if (!is_floating(context.tensor(scale).dtype) || !is_integral(context.tensor(zero).dtype)) {
    return context.fail(Error::InvalidType, "arguments %u and %u: expected floating point and integers", scale, zero);
  }
  return Error::Ok;
}

void put(const Tensor& scales, const Tensor& zeros, std::int64_t i, double scale, std::int64_t zero) {
  find_store(scales.dtype, Lane::F64)(
      static_cast<std::byte*>(scales.data) + i * static_cast<std::int64_t>(element_size(scales.dtype)), 1, &scale, 1);
  find_store(zeros.dtype, Lane::I64)(
      static_cast<std::byte*>(zeros.data) + i * static_cast<std::int64_t>(element_size(zeros.dtype)), 1, &zero, 1);
}

// choose_qparams.Tensor(input, quant_min, quant_max, eps, dtype, scale, zero_point): affine or symmetric, for the whole
// tensor.
template <bool kSymmetric>
struct Choose {
  struct State {
    bool ready = false;
  };
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "tiif*tt"));
    return check_outputs(context, 5, 6);
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    const std::int32_t one[1] = {1};
    for (const std::uint32_t arg : {5U, 6U}) {
      Tensor& out = context.tensor(arg);
      WB_TRY(context.resize(out, {one, out.rank == 0 ? 0U : 1U}));
    }
    if (context.tensor(0).numel() == 0) return context.fail(Error::InvalidArgument, "argument 0: it has no element");
    return Error::Ok;
  }
  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& input = context.tensor(0);
    const auto low = static_cast<float>(context.arg(1).scalar<double>());
    const auto high = static_cast<float>(context.arg(2).scalar<double>());
    const auto eps = static_cast<float>(context.arg(3).scalar<double>());
    Range range;
    widen(range, input, 0, input.numel());
    const float least = range.low < 0 ? range.low : 0;
    const float most = range.high > 0 ? range.high : 0;
    const float reach = most > -least ? most : -least;
    float scale = kSymmetric ? reach / ((high - low) / 2) : (most - least) / (high - low);
    scale = scale > eps ? scale : eps;
    const float middle = context.arg(4).scalar<std::int64_t>() == static_cast<int>(ScalarType::Byte) ? 128.0F : 0.0F;
    const float zero = kSymmetric ? middle : clamp(low - std::nearbyint(least / scale), low, high);
    put(context.tensor(5), context.tensor(6), 0, static_cast<double>(scale), static_cast<std::int64_t>(zero));
    return Error::Ok;
  }
};

// choose_qparams_per_token[_asymmetric](input, dtype, scale, zero_point): int8, for each row of the last dimension.
template <bool kSymmetric>
struct ChoosePerToken {
  struct State {
    bool ready = false;
  };
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "t*tt"));
    return check_outputs(context, 2, 3);
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    const Tensor& input = context.tensor(0);
    if (input.rank == 0 || !input.is_contiguous() || input.sizes[input.rank - 1] == 0) {
      return context.fail(Error::NotSupported, "argument 0: expected a contiguous tensor with elements in each row");
    }
    Shape shape;
    shape.assign(input);
    shape.sizes[shape.rank - 1] = 1;
    WB_TRY(context.resize(context.tensor(2), shape.span()));
    WB_TRY(context.resize(context.tensor(3), shape.span()));
    if (!context.tensor(2).is_contiguous() || !context.tensor(3).is_contiguous()) {
      return context.fail(Error::NotSupported, "the outputs must be contiguous");
    }
    return Error::Ok;
  }
  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& input = context.tensor(0);
    const std::int64_t row = input.sizes[input.rank - 1];
    const std::int64_t rows = input.numel() / row;
    for (std::int64_t i = 0; i < rows; ++i) {
      Range range;
      widen(range, input, i * row, row);
      const float least = range.low < 0 ? range.low : 0;
      const float most = range.high > 0 ? range.high : 0;
      if constexpr (kSymmetric) {
        const float reach = most > -least ? most : -least;
        put(context.tensor(2), context.tensor(3), i, static_cast<double>((reach > 1e-5F ? reach : 1e-5F) / 127.0F), 0);
        continue;
      }
      float scale = (most - least) / 255.0F;
      scale = scale > std::numeric_limits<float>::epsilon() ? scale : std::numeric_limits<float>::epsilon();
      const float from_low = -128.0F + least / scale;
      const float from_high = 127.0F + most / scale;
      const float zero = from_low + from_high > 0 ? -128.0F - least / scale : 127.0F - most / scale;
      put(context.tensor(2), context.tensor(3), i, static_cast<double>(scale),
          static_cast<std::int64_t>(std::nearbyint(clamp(zero, -128.0F, 127.0F))));
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(quantized_choose, planned<Choose<false>>("quantized_decomposed::choose_qparams.Tensor_out"),
           planned<Choose<false>>("quantized_decomposed::choose_qparams.tensor_out"),
           planned<Choose<true>>("quantized_decomposed::choose_qparams_symmetric.Tensor_out"),
           planned<Choose<true>>("quantized_decomposed::choose_qparams_symmetric.tensor_out"),
           planned<ChoosePerToken<true>>("quantized_decomposed::choose_qparams_per_token.out"),
           planned<ChoosePerToken<false>>("quantized_decomposed::choose_qparams_per_token_asymmetric.out"))
