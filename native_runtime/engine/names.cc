#include "engine/names.h"

#include <array>
#include <cstdio>

namespace wb::engine {
namespace {

constexpr std::array<const char*, kOpCount> kOps = {
    "pointwise", "matmul",     "convolution", "transposed_convolution",
    "max_pool",  "avg_pool",   "reduce",      "arg_reduce",
    "softmax",   "layer_norm", "rms_norm",    "group_norm",
    "attention", "embedding",  "gather",      "lstm",
    "gru",       "transpose",  "reshape",     "expand",
    "concat",    "slice",      "pad",         "upsample",
    "convert",   "copy",       "quantize",    "dequantize",
};

constexpr std::array<const char*, kFnCount> kFns = {
    "identity",    "abs",         "neg",         "ceil",
    "floor",       "round",       "trunc",       "sign",
    "square",      "sqrt",        "rsqrt",       "reciprocal",
    "exp",         "expm1",       "log",         "log1p",
    "sin",         "cos",         "tan",         "asin",
    "acos",        "atan",        "sinh",        "cosh",
    "tanh",        "erf",         "sigmoid",     "silu",
    "hardsigmoid", "hardswish",   "gelu",        "gelu_tanh",
    "mish",        "softplus",    "elu",         "leaky_relu",
    "clamp",       "pow_scalar",  "add_scalar",  "mul_scalar",
    "rsub_scalar", "rdiv_scalar", "logical_not", "isnan",
    "add",         "sub",         "mul",         "div",
    "maximum",     "minimum",     "pow",         "squared_difference",
    "prelu",       "copysign",    "atan2",       "fmod",
    "remainder",   "add_scaled",  "eq",          "ne",
    "lt",          "le",          "gt",          "ge",
    "logical_and", "logical_or",  "logical_xor", "where",
};
static_assert(kOps.back() != nullptr && kFns.back() != nullptr);

}  // namespace

const char* name_of(Op op) {
  const auto index = static_cast<std::size_t>(op);
  return index < kOps.size() ? kOps[index] : "unknown";
}

const char* name_of(Fn fn) {
  const auto index = static_cast<std::size_t>(fn);
  return index < kFns.size() ? kFns[index] : "unknown";
}

int arity_of(Fn fn) {
  if (fn >= Fn::Where) return 3;
  return fn >= Fn::Add ? 2 : 1;
}

ShapeText::ShapeText(const Shape& shape) {
  std::size_t at = 0;
  const auto add = [&](const char* format, auto... values) {
    const int written = std::snprintf(text + at, sizeof text - at, format, values...);
    if (written > 0) at += static_cast<std::size_t>(written);
    if (at >= sizeof text) at = sizeof text - 1;
  };
  text[0] = '\0';
  add("%s", "[");
  for (int d = 0; d < shape.rank && d < kMaxRank; ++d) {
    add("%s%lld", d == 0 ? "" : ", ", static_cast<long long>(shape.sizes[d]));
  }
  add("%s", "]");
}

}  // namespace wb::engine
