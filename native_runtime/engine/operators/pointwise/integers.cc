#include "engine/operators/pointwise/integers.h"

#include <algorithm>

#include "engine/operators/common/work.h"
#include "kernels/common/convert.h"

namespace wb::engine::WB_ISA {
namespace {

using kernels::WB_ISA::find_load;
using kernels::WB_ISA::find_store;
using kernels::WB_ISA::Lane;

using Number = std::int64_t;

// Sums and products wrap.
Number add(Number x, Number y) {
  return static_cast<Number>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
}
Number sub(Number x, Number y) {
  return static_cast<Number>(static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y));
}
Number mul(Number x, Number y) {
  return static_cast<Number>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
}

Number power(Number x, Number exponent) {
  if (exponent < 0) return x == 1 ? 1 : x == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  Number result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = mul(result, x);
    x = mul(x, x);
  }
  return result;
}

// The rest has the sign of x; of a division by zero, which must not trap: 0.
Number fmod(Number x, Number y) { return y == 0 || y == -1 ? 0 : x % y; }
// The rest has the sign of y.
Number remainder(Number x, Number y) {
  const Number r = fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

// A parameter of a step, which is a float.
Number whole(float value) {
  if (value >= 9.2233720e18F) return INT64_MAX;
  if (value <= -9.2233720e18F || value != value) return INT64_MIN;
  return static_cast<Number>(value);
}

struct Row {
  Number* out;
  const Number* x;
  const Number* y;
  const Number* z;
  std::int64_t n;

  template <typename F>
  void map(F f) const {
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
  }
  template <typename F>
  void map2(F f) const {
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
  }
};

// False when there is no such function of integers.
bool unary(const PointwiseStep& step, const Row& row) {
  const Number a = whole(step.a);
  const Number b = whole(step.b);
  switch (step.fn) {
    case Fn::Identity:
    case Fn::Ceil:
    case Fn::Floor:
    case Fn::Round:
    case Fn::Trunc: row.map([](Number x) { return x; }); return true;
    case Fn::Abs: row.map([](Number x) { return x < 0 ? sub(0, x) : x; }); return true;
    case Fn::Neg: row.map([](Number x) { return sub(0, x); }); return true;
    case Fn::Sign: row.map([](Number x) { return Number{x > 0} - Number{x < 0}; }); return true;
    case Fn::Square: row.map([](Number x) { return mul(x, x); }); return true;
    case Fn::Clamp: row.map([a, b](Number x) { return std::min(std::max(x, a), b); }); return true;
    case Fn::LeakyRelu: row.map([a](Number x) { return x >= 0 ? x : mul(x, a); }); return true;
    case Fn::PowScalar: row.map([a](Number x) { return power(x, a); }); return true;
    case Fn::AddScalar: row.map([a](Number x) { return add(x, a); }); return true;
    case Fn::MulScalar: row.map([a](Number x) { return mul(x, a); }); return true;
    case Fn::ReverseSubScalar: row.map([a](Number x) { return sub(a, x); }); return true;
    case Fn::LogicalNot: row.map([](Number x) { return Number{x == 0}; }); return true;
    case Fn::IsNan: row.map([](Number) { return Number{0}; }); return true;
    default: return false;
  }
}

bool binary(const PointwiseStep& step, const Row& row) {
  const Number a = whole(step.a);
  switch (step.fn) {
    case Fn::Add: row.map2(add); return true;
    case Fn::Sub: row.map2(sub); return true;
    case Fn::Mul: row.map2(mul); return true;
    case Fn::Maximum: row.map2([](Number x, Number y) { return std::max(x, y); }); return true;
    case Fn::Minimum: row.map2([](Number x, Number y) { return std::min(x, y); }); return true;
    case Fn::Pow: row.map2(power); return true;
    case Fn::SquaredDifference: row.map2([](Number x, Number y) { return mul(sub(x, y), sub(x, y)); }); return true;
    case Fn::Fmod: row.map2(fmod); return true;
    case Fn::Remainder: row.map2(remainder); return true;
    case Fn::AddScaled: row.map2([a](Number x, Number y) { return add(x, mul(a, y)); }); return true;
    case Fn::Eq: row.map2([](Number x, Number y) { return Number{x == y}; }); return true;
    case Fn::Ne: row.map2([](Number x, Number y) { return Number{x != y}; }); return true;
    case Fn::Lt: row.map2([](Number x, Number y) { return Number{x < y}; }); return true;
    case Fn::Le: row.map2([](Number x, Number y) { return Number{x <= y}; }); return true;
    case Fn::Gt: row.map2([](Number x, Number y) { return Number{x > y}; }); return true;
    case Fn::Ge: row.map2([](Number x, Number y) { return Number{x >= y}; }); return true;
    case Fn::LogicalAnd: row.map2([](Number x, Number y) { return Number{x != 0 && y != 0}; }); return true;
    case Fn::LogicalOr: row.map2([](Number x, Number y) { return Number{x != 0 || y != 0}; }); return true;
    case Fn::LogicalXor: row.map2([](Number x, Number y) { return Number{(x != 0) != (y != 0)}; }); return true;
    default: return false;
  }
}

bool compute(const PointwiseStep& step, const Row& row) {
  switch (arity_of(step.fn)) {
    case 1: return unary(step, row);
    case 2: return binary(step, row);
    default:
      for (std::int64_t i = 0; i < row.n; ++i) row.out[i] = row.x[i] != 0 ? row.y[i] : row.z[i];
      return true;
  }
}

struct Buffers {
  alignas(64) Number inputs[StepProgram::kMaxInputs][kIntegerBlock];
  alignas(64) Number results[StepProgram::kMaxSteps][kIntegerBlock];
};

void run_rectangle(const RunContext& context, const PointwiseLayout& layout, std::int64_t index, Buffers& buffers) {
  const auto count = static_cast<int>(context.operands.input_count);
  const Rectangle at(layout, count, index);
  for (int k = 0; k < count; ++k) {
    const TensorView& input = context.operands.inputs[k];
    const auto load = find_load(input.dtype, Lane::I64);
    const auto size = static_cast<std::int64_t>(element_size(input.dtype));
    for (std::int64_t r = 0; r < at.rows; ++r) {
      load(buffers.inputs[k] + r * at.cols, input.as<std::byte>() + (at.inputs[k] + r * layout.row_stride(k)) * size,
           layout.col_stride(k), at.cols);
    }
  }
  const auto operand = [&](std::uint8_t which) -> const Number* {
    if (which >= kInputRegister) return buffers.inputs[which - kInputRegister];
    return which == 0 ? buffers.inputs[0] : buffers.results[which - 1];
  };
  for (std::uint32_t i = 0; i < context.post_count; ++i) {
    const PointwiseStep& step = context.node.post[i];
    const int arity = arity_of(step.fn);
    const Number* x = operand(step.operands[0]);
    compute(step, {buffers.results[i], x, arity > 1 ? operand(step.operands[1]) : x,
                   arity > 2 ? operand(step.operands[2]) : x, at.rows * at.cols});
  }
  const TensorView& out = context.operands.outputs[0];
  const auto store = find_store(out.dtype, Lane::I64);
  const auto size = static_cast<std::int64_t>(element_size(out.dtype));
  const Number* result = context.post_count == 0 ? buffers.inputs[0] : buffers.results[context.post_count - 1];
  for (std::int64_t r = 0; r < at.rows; ++r) {
    store(out.as<std::byte>() + (at.out + r * layout.cols()) * size, 1, result + r * at.cols, at.cols);
  }
}

}  // namespace

bool integers_have(Fn fn) {
  PointwiseStep step;
  step.fn = fn;
  return compute(step, {nullptr, nullptr, nullptr, nullptr, 0});
}

void run_integers(const RunContext& context, const PointwiseLayout& layout) {
  const auto steps = static_cast<std::int64_t>(context.post_count);
  const std::int64_t work = context.operands.outputs[0].shape.numel() * (4 + 4 * steps);
  split(context.pool, layout.blocks, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    Buffers buffers;
    for (std::int64_t i = begin; i < end; ++i) run_rectangle(context, layout, i, buffers);
  });
}

}  // namespace wb::engine::WB_ISA
