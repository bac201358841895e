// Nodes of one and of two inputs that work element by element.
#include <cmath>

#include "backends/xnnpack/nodes/kinds.h"

namespace wb::xnnpack {
namespace {

using engine::Fn;

Error build(Builder& builder, Fn fn, std::uint32_t input_id, std::uint32_t output_id, std::uint32_t flags, float a = 0,
            float b = 0) {
  WB_TRY(builder.allow_flags(flags, 0));
  WB_ASSIGN(const ValueId input, builder.input("input_id", input_id));
  WB_ASSIGN(const ValueId output,
            builder.output("output_id", output_id, builder.extent(input), builder.value(input).dtype));
  builder.emit_pointwise(fn, {input}, output, a, b);
  return Error::Ok;
}

template <Fn fn>
Error build_unary(Builder& builder, const fb::Unary& node) {
  return build(builder, fn, node.input_id(), node.output_id(), node.flags());
}

Error build_elu(Builder& builder, const fb::ELU& node) {
  if (!std::isfinite(node.alpha())) {
    return builder.fail(Error::InvalidProgram, "alpha is %g", static_cast<double>(node.alpha()));
  }
  return build(builder, Fn::Elu, node.input_id(), node.output_id(), node.flags(), node.alpha());
}

Error build_leaky_relu(Builder& builder, const fb::LeakyReLU& node) {
  if (!std::isfinite(node.negative_slope())) {
    return builder.fail(Error::InvalidProgram, "negative_slope is %g", static_cast<double>(node.negative_slope()));
  }
  return build(builder, Fn::LeakyRelu, node.input_id(), node.output_id(), node.flags(), node.negative_slope());
}

// Dimensions aligned at the end; of each pair one is 1 or both are the same.
Result<Extent> broadcast(const Builder& builder, const Extent& a, const Extent& b) {
  Extent result;
  const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
  for (int d = 0; d < rank; ++d) {
    const int i = d - (rank - a.rank());
    const int j = d - (rank - b.rank());
    const std::int64_t x = i < 0 ? 1 : a.size(i);
    const std::int64_t y = j < 0 ? 1 : b.size(j);
    if (x != y && x != 1 && y != 1) {
      return builder.fail(Error::InvalidProgram, "inputs of sizes %s and %s don't broadcast", text_of(a).c_str(),
                          text_of(b).c_str());
    }
    const bool dynamic = (x != 1 && a.is_dynamic(i)) || (y != 1 && b.is_dynamic(j));
    // Both are the same while running: what is known of one is known of the other.
    const bool fixed = (x != 1 && !a.is_dynamic(i)) || (y != 1 && !b.is_dynamic(j));
    result.append(x == 1 ? y : x, dynamic && !fixed);
  }
  return result;
}

template <Fn fn>
Error build_binary(Builder& builder, const fb::Binary& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  WB_ASSIGN(const ValueId a, builder.input("input1_id", node.input1_id()));
  WB_ASSIGN(const ValueId b, builder.input("input2_id", node.input2_id()));
  WB_TRY(builder.same_dtype({a, b}));
  WB_ASSIGN(const Extent extent, broadcast(builder, builder.extent(a), builder.extent(b)));
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), extent, builder.value(a).dtype));
  builder.emit_pointwise(fn, {a, b}, output);
  return Error::Ok;
}

template <Fn fn>
constexpr NodeKind unary(fb::Operator kind) {
  return row<fb::Unary, build_unary<fn>>(kind);
}

template <Fn fn>
constexpr NodeKind binary(fb::Operator kind, bool bounds = false) {
  return row<fb::Binary, build_binary<fn>>(kind, bounds);
}

// Clamp itself is built by build_clamp.
constexpr NodeKind kKinds[] = {
    {fb::Operator::Clamp, nullptr},
    unary<Fn::Abs>(fb::Operator::Abs),
    unary<Fn::Ceil>(fb::Operator::Ceiling),
    unary<Fn::Cos>(fb::Operator::Cos),
    unary<Fn::Exp>(fb::Operator::Exp),
    unary<Fn::Floor>(fb::Operator::Floor),
    unary<Fn::Gelu>(fb::Operator::Gelu),
    unary<Fn::HardSwish>(fb::Operator::Hardswish),
    unary<Fn::Log>(fb::Operator::Log),
    unary<Fn::Neg>(fb::Operator::Negate),
    unary<Fn::Rsqrt>(fb::Operator::ReciprocalSquareRoot),
    unary<Fn::Sigmoid>(fb::Operator::Sigmoid),
    unary<Fn::Sin>(fb::Operator::Sin),
    unary<Fn::Square>(fb::Operator::Square),
    unary<Fn::Sqrt>(fb::Operator::SquareRoot),
    unary<Fn::Tanh>(fb::Operator::Tanh),
    row<fb::ELU, build_elu>(fb::Operator::ELU),
    row<fb::LeakyReLU, build_leaky_relu>(fb::Operator::LeakyReLU),
    binary<Fn::Add>(fb::Operator::Add, true),
    binary<Fn::Sub>(fb::Operator::Subtract, true),
    binary<Fn::Mul>(fb::Operator::Multiply, true),
    binary<Fn::Div>(fb::Operator::Divide, true),
    binary<Fn::Maximum>(fb::Operator::Maximum),
    binary<Fn::Minimum>(fb::Operator::Minimum),
    binary<Fn::Prelu>(fb::Operator::PReLU),
};

}  // namespace

Error build_clamp(Builder& builder, const fb::Unary& node, float low, float high) {
  return build(builder, Fn::Clamp, node.input_id(), node.output_id(), node.flags(), low, high);
}

constinit const std::span<const NodeKind> elementwise_kinds = kKinds;

}  // namespace wb::xnnpack
