// quantize and dequantize: q = clamp(round(x / scale) + zero_point, quant_min, quant_max); x = (q - zero_point) scale.
// As in torch.ao.quantization, the reciprocal of the scale is multiplied, ties round to even, and per-token
// quantization adds the zero point before it rounds.
#include <cmath>

#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

template <typename T>
T rounded(T x) {
  return std::nearbyint(x);
}

template <typename T>
T clamped(T x, T low, T high) {
  const T y = x < low ? low : x;
  return y > high ? high : y;
}

// Params: scale, zero_point, quant_min, quant_max.
template <typename T>
struct Quantize {
  T inverse, zero, low, high;
  Quantize(const Params& p, T /*lane*/)
      : inverse(static_cast<T>(1.0 / p.f[0])),
        zero(static_cast<T>(p.f[1])),
        low(static_cast<T>(p.f[2])),
        high(static_cast<T>(p.f[3])) {}
  T operator()(T x) const { return clamped(rounded(x * inverse) + zero, low, high); }
};

template <typename T>
struct Dequantize {
  T scale, zero;
  Dequantize(const Params& p, T /*lane*/) : scale(static_cast<T>(p.f[0])), zero(static_cast<T>(p.f[1])) {}
  T operator()(T q) const { return (q - zero) * scale; }
};

enum class Kind : std::uint8_t { QuantizeChannel, QuantizeToken, Dequantize };

// in: values, scales, zero points. Params of quantizing: quant_min, quant_max.
template <typename T, Kind kind>
void affine_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(in[0]);
  const T* scales = static_cast<const T*>(in[1]);
  const T* zeros = static_cast<const T*>(in[2]);
  const T low = static_cast<T>(params.f[0]);
  const T high = static_cast<T>(params.f[1]);
  const auto one = [&](T value, T scale, T zero) {
    if constexpr (kind == Kind::QuantizeChannel) {
      return clamped(rounded(value * (T{1} / scale)) + zero, low, high);
    } else if constexpr (kind == Kind::QuantizeToken) {
      return clamped(rounded(value * (T{1} / scale) + zero), low, high);
    } else {
      return (value - zero) * scale;
    }
  };
  if (mask == 6) {
    const T scale = *scales;
    const T zero = *zeros;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) o[i] = one(x[i], scale, zero);
  } else if (mask == 0) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) o[i] = one(x[i], scales[i], zeros[i]);
  } else {
    const std::int64_t sx = (mask & 1U) != 0 ? 0 : 1;
    const std::int64_t ss = (mask & 2U) != 0 ? 0 : 1;
    const std::int64_t sz = (mask & 4U) != 0 ? 0 : 1;
    for (std::int64_t i = 0; i < n; ++i) o[i] = one(x[i * sx], scales[i * ss], zeros[i * sz]);
  }
}

struct Scale : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T q, T scale) const {
    return q * scale;
  }
};

template <template <typename> class F>
constexpr PointwiseOp per_tensor(Signature signature) {
  return {signature,
          LaneRule::First,
          OutLane::Same,
          {unary_loop<F<float>, float, float>, unary_loop<F<double>, double, double>}};
}

template <Kind kind>
constexpr PointwiseOp affine(Signature signature) {
  return {signature, LaneRule::Float, OutLane::Same, {affine_loop<float, kind>, affine_loop<double, kind>}};
}

constexpr PointwiseOp kPerChannel = affine<Kind::Dequantize>("tcca----");
constexpr PointwiseOp kPerChannelSymmetric = float_binary<Scale>("tc-a----");

Error dequantize_channel_prepare(KernelContext& context) {
  const bool symmetric = context.count() > 2 && context.arg(2).is_none();
  return pointwise_prepare(context, symmetric ? kPerChannelSymmetric : kPerChannel);
}

// Params: scale, zero point, quant_min, quant_max of a, of b, of the output.
struct QuantizedAdd {
  float scale_a, zero_a, scale_b, zero_b, inverse, zero, low, high;
  template <typename T>
  QuantizedAdd(const Params& p, T /*lane*/)
      : scale_a(static_cast<float>(p.f[0])),
        zero_a(static_cast<float>(p.f[1])),
        scale_b(static_cast<float>(p.f[4])),
        zero_b(static_cast<float>(p.f[5])),
        inverse(static_cast<float>(1.0 / p.f[8])),
        zero(static_cast<float>(p.f[9])),
        low(static_cast<float>(p.f[10])),
        high(static_cast<float>(p.f[11])) {}
  float operator()(float a, float b) const {
    const float sum = (a - zero_a) * scale_a + (b - zero_b) * scale_b;
    return clamped(rounded(sum * inverse) + zero, low, high);
  }
};

constexpr PointwiseOp kAdd = {
    "tsssstssssssss", LaneRule::First, OutLane::Same, {binary_loop<QuantizedAdd, float, float>}};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(quantized_affine,
           WB_POINTWISE("quantized_decomposed::quantize_per_tensor.out", per_tensor<Quantize>("tssss-")),
           WB_POINTWISE("quantized_decomposed::quantize_per_tensor.Tensor_out", per_tensor<Quantize>("tvvss-")),
           WB_POINTWISE("quantized_decomposed::quantize_per_tensor.tensor_out", per_tensor<Quantize>("tvvss-")),
           WB_POINTWISE("quantized_decomposed::dequantize_per_tensor.out", per_tensor<Dequantize>("tss----")),
           WB_POINTWISE("quantized_decomposed::dequantize_per_tensor.Tensor_out", per_tensor<Dequantize>("tvv----")),
           WB_POINTWISE("quantized_decomposed::dequantize_per_tensor.tensor_out", per_tensor<Dequantize>("tvv----")),
           WB_POINTWISE("quantized_decomposed::quantize_per_channel.out", affine<Kind::QuantizeChannel>("tccass-")),
           {"quantized_decomposed::dequantize_per_channel.out", dequantize_channel_prepare, pointwise_execute},
           WB_POINTWISE("quantized_decomposed::quantize_per_token.out", affine<Kind::QuantizeToken>("tttss-")),
           WB_POINTWISE("quantized_decomposed::dequantize_per_token.out", affine<Kind::Dequantize>("ttt----")),
           WB_POINTWISE("quantized_decomposed::add.out", kAdd))
