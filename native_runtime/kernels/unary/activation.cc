// Activations with parameters.
#include <cmath>

#include "kernels/common/math.h"
#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

template <typename T>
T number(const Params& params, int k) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(params.f[k]);
  } else {
    return static_cast<T>(params.i[k]);
  }
}

// min(max(x, low), high); NaN stays.
template <typename T>
struct ClampTo {
  T low, high;
  ClampTo(const Params& params, T /*lane*/) : low(number<T>(params, 0)), high(number<T>(params, 1)) {}
  T operator()(T x) const {
    const T y = x < low ? low : x;
    return y > high ? high : y;
  }
};

template <typename T>
struct LeakyRelu {
  T slope;
  LeakyRelu(const Params& params, T /*lane*/) : slope(number<T>(params, 0)) {}
  T operator()(T x) const { return x > T{0} ? x : x * slope; }
};

// x > 0: x scale; else (exp(x input_scale) - 1) alpha scale. Arguments: alpha, scale, input_scale.
template <typename T>
struct Elu {
  T negative, positive, input;
  Elu(const Params& params, T /*lane*/)
      : negative(static_cast<T>(params.f[0] * params.f[1])),
        positive(static_cast<T>(params.f[1])),
        input(static_cast<T>(params.f[2])) {}
  T operator()(T x) const { return x > T{0} ? x * positive : fast_expm1(x * input) * negative; }
};

template <typename T>
struct GeluErf {
  GeluErf(const Params& /*params*/, T /*lane*/) {}
  T operator()(T x) const { return x * T{0.5} * (T{1} + fast_erf(x * static_cast<T>(M_SQRT1_2))); }
};

template <typename T>
struct GeluTanh {
  GeluTanh(const Params& /*params*/, T /*lane*/) {}
  T operator()(T x) const {
    const T inner = static_cast<T>(M_SQRT2 * M_2_SQRTPI * 0.5) * (x + static_cast<T>(0.044715) * x * x * x);
    return T{0.5} * x * (T{1} + fast_tanh(inner));
  }
};

template <typename T>
void gelu_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  if (params.i[0] == 0) {
    unary_loop<GeluErf<T>, T, T>(out, in, mask, n, params);
  } else {
    unary_loop<GeluTanh<T>, T, T>(out, in, mask, n, params);
  }
}

// log(1 + exp(beta x)) / beta, x itself above the threshold. Arguments: beta, threshold.
template <typename T>
struct Softplus {
  T beta, threshold;
  Softplus(const Params& params, T /*lane*/)
      : beta(static_cast<T>(params.f[0])), threshold(static_cast<T>(params.f[1])) {}
  T operator()(T x) const { return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta; }
};

template <typename T>
struct HardSwish {
  HardSwish(const Params& /*params*/, T /*lane*/) {}
  T operator()(T x) const {
    const T y = x + T{3};
    const T low = y < T{0} ? T{0} : y;
    return x * (low > T{6} ? T{6} : low) / T{6};
  }
};

template <typename T>
struct HardSigmoid {
  HardSigmoid(const Params& /*params*/, T /*lane*/) {}
  T operator()(T x) const {
    const T y = x + T{3};
    const T low = y < T{0} ? T{0} : y;
    return (low > T{6} ? T{6} : low) / T{6};
  }
};

template <template <typename> class F>
constexpr PointwiseOp float_activation(Signature signature) {
  return {signature,
          LaneRule::Float,
          OutLane::Same,
          {unary_loop<F<float>, float, float>, unary_loop<F<double>, double, double>}};
}

constexpr PointwiseOp clamp_op(Signature signature) {
  return {signature,
          LaneRule::Promote,
          OutLane::Same,
          {unary_loop<ClampTo<float>, float, float>, unary_loop<ClampTo<double>, double, double>,
           unary_loop<ClampTo<std::int64_t>, std::int64_t, std::int64_t>}};
}

constexpr PointwiseOp kGelu = {"tg", LaneRule::Float, OutLane::Same, {gelu_loop<float>, gelu_loop<double>}};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(unary_activation, WB_POINTWISE("aten::clamp.out", clamp_op("tlh")),
           WB_POINTWISE("aten::hardtanh.out", clamp_op("tss")),
           WB_POINTWISE("aten::leaky_relu.out", float_activation<LeakyRelu>("ts")),
           WB_POINTWISE("aten::elu.out", float_activation<Elu>("tsss")), WB_POINTWISE("aten::gelu.out", kGelu),
           WB_POINTWISE("aten::softplus.out", float_activation<Softplus>("tss")),
           WB_POINTWISE("aten::hardswish.out", float_activation<HardSwish>("t")),
           WB_POINTWISE("aten::hardsigmoid.out", float_activation<HardSigmoid>("t")))
