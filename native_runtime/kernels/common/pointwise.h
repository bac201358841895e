// Operators that compute each output element from the elements at the same place in broadcast inputs.
//
// An operator is a signature of its arguments, a rule for the lane to compute in, and one loop a lane. The engine
// checks, broadcasts, walks every layout, and converts mixed dtypes block by block; when dtypes and layouts agree, the
// loop runs on the tensors themselves.
#pragma once

#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {

// Numbers among the arguments, in order, for loops of floating-point and of integer lanes.
inline constexpr int kMaxParams = 12;

struct Params {
  double f[kMaxParams] = {};
  std::int64_t i[kMaxParams] = {};
};

// out[j] = f(in[0][j], in[1][j], ...) for j in [0, n). Bit k of `scalar_mask`: in[k] is one element, for all j.
using Loop = void (*)(void* out, const void* const* in, unsigned scalar_mask, std::int64_t n, const Params& params);

enum class LaneRule : std::uint8_t {
  Promote,  // PyTorch's promotion; bool counts as integer
  Float,    // double if the promoted type is, else float: true division, transcendental functions
  Integer,  // integers and bool only
  Logical,  // every input becomes bool
  Mode,     // Float when the rounding mode (letter m) is None, else Promote
  First,    // like Float, by the first operand and the output alone
  Select,   // like Promote for all operands but the mask, which is bool; bits are moved when their dtypes agree
};

enum class OutLane : std::uint8_t { Same, Bool };

struct Signature {
  char letters[20] = {};
  constexpr Signature(const char* text) {  // NOLINT(google-explicit-constructor)
    for (int i = 0; text[i] != '\0'; ++i) letters[i] = text[i];
  }
};

// Letters of a signature, one for each argument before the output:
//   t tensor operand    # number that stands for an operand    c 1-d tensor operand along the dimension in argument a
//   v tensor of one element -> params    a the dimension of c
//   s number -> params  l, h number or None (then -inf, +inf) -> params   g gelu's approximation -> params.i
//   m rounding mode or None -> params.i: 0 none, 1 trunc, 2 floor          - not looked at
struct PointwiseOp {
  Signature signature;
  LaneRule rule = LaneRule::Promote;
  OutLane out_lane = OutLane::Same;
  Loop loops[8] = {};            // by Lane; null where the operator has none
  std::int8_t mask_operand = 0;  // of Select: the operand that is bool
};

struct PointwiseState {
  bool ready = false;
  std::uint8_t tensors = 0;   // operands that are tensors
  std::uint8_t operands = 0;  // operands of the loop
  std::uint8_t tensor_args[3] = {};
  std::int8_t number_operand = -1;  // which operand is a number
  std::uint8_t number_arg = 0;
  std::uint8_t param_args[kMaxParams] = {};
  char param_letters[kMaxParams] = {};
  std::uint8_t channel_mask = 0;  // operands along one dimension
  std::uint8_t axis_arg = 0;
  std::uint8_t params = 0;
  bool params_constant = false;
  bool flat = false;         // one call of the loop on the tensors themselves
  unsigned scalar_mask = 0;  // of a flat call
  Lane lane = Lane::F32;
  Lane in_lanes[3] = {};
  Lane out_lane = Lane::F32;
  Loop loop = nullptr;
  LoadFunction loads[3] = {};  // null: the tensor is an array of the lane's type
  StoreFunction store = nullptr;
  std::uint8_t in_sizes[3] = {};  // bytes of an element
  std::uint8_t out_size = 0;
  std::uint8_t out_arg = 0;
  Params values;
  union {
    double f;
    float f32;
    std::int64_t i;
    bool b;
  } number = {};
  Nest nest;
};

Error pointwise_prepare(KernelContext& context, const PointwiseOp& op);
Error pointwise_execute(KernelContext& context);

template <auto Make>
Error pointwise_prepare_of(KernelContext& context) {
  static constexpr PointwiseOp op = Make();
  return pointwise_prepare(context, op);
}

// A row of the kernel table; the expression makes the PointwiseOp.
#define WB_POINTWISE(name, ...)                                               \
  ::wb::Kernel {                                                              \
    name, pointwise_prepare_of<[] { return __VA_ARGS__; }>, pointwise_execute \
  }

// Loops of a functor: F(params, T{}) makes it, operator() computes one element.
template <typename F, typename T, typename R>
void unary_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  const F f(params, T{});
  R* o = static_cast<R*>(out);
  const T* a = static_cast<const T*>(in[0]);
  if (mask == 0) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) o[i] = f(a[i]);
  } else {
    const R value = f(*a);
    for (std::int64_t i = 0; i < n; ++i) o[i] = value;
  }
}

template <typename F, typename T, typename R>
void binary_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  const F f(params, T{});
  R* o = static_cast<R*>(out);
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  if (mask == 0) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) o[i] = f(a[i], b[i]);
  } else if (mask == 2) {
    const T y = *b;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) o[i] = f(a[i], y);
  } else if (mask == 1) {
    const T x = *a;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) o[i] = f(x, b[i]);
  } else {
    const R value = f(*a, *b);
    for (std::int64_t i = 0; i < n; ++i) o[i] = value;
  }
}

// For functors without parameters.
struct Plain {
  template <typename T>
  constexpr Plain(const Params& /*params*/, T /*lane*/) {}
};

// The float lanes, then the integer lane, of unary (arity 1) and binary (arity 2) functors.
template <typename F>
constexpr PointwiseOp float_unary(Signature signature = "t") {
  return {signature, LaneRule::Float, OutLane::Same, {unary_loop<F, float, float>, unary_loop<F, double, double>}};
}

template <typename F>
constexpr PointwiseOp unary(Signature signature = "t") {
  return {signature,
          LaneRule::Promote,
          OutLane::Same,
          {unary_loop<F, float, float>, unary_loop<F, double, double>, unary_loop<F, std::int64_t, std::int64_t>}};
}

template <typename F>
constexpr PointwiseOp unary_predicate(Signature signature = "t") {
  return {signature,
          LaneRule::Promote,
          OutLane::Bool,
          {unary_loop<F, float, bool>, unary_loop<F, double, bool>, unary_loop<F, std::int64_t, bool>}};
}

template <typename F>
constexpr PointwiseOp binary(Signature signature = "tt", LaneRule rule = LaneRule::Promote) {
  return {signature,
          rule,
          OutLane::Same,
          {binary_loop<F, float, float>, binary_loop<F, double, double>, binary_loop<F, std::int64_t, std::int64_t>}};
}

template <typename F>
constexpr PointwiseOp float_binary(Signature signature = "tt") {
  return {signature, LaneRule::Float, OutLane::Same, {binary_loop<F, float, float>, binary_loop<F, double, double>}};
}

template <typename F>
constexpr PointwiseOp integer_binary(Signature signature = "tt") {
  return {signature, LaneRule::Integer, OutLane::Same, {nullptr, nullptr, binary_loop<F, std::int64_t, std::int64_t>}};
}

template <typename F>
constexpr PointwiseOp compare(Signature signature = "tt") {
  return {signature,
          LaneRule::Promote,
          OutLane::Bool,
          {binary_loop<F, float, bool>, binary_loop<F, double, bool>, binary_loop<F, std::int64_t, bool>}};
}

template <typename F>
constexpr PointwiseOp logical(Signature signature = "tt") {
  return {signature, LaneRule::Logical, OutLane::Bool, {nullptr, nullptr, nullptr, binary_loop<F, bool, bool>}};
}

}  // namespace wb::kernels::WB_ISA
