#include "backends/xnnpack/nodes/kinds.h"

namespace wb::xnnpack {
namespace {

// Over the last dimension.
Error build_softmax(Builder& builder, const fb::Unary& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  const Extent x = builder.extent(input);
  if (x.rank() == 0) return builder.fail(Error::InvalidProgram, "input_id: expected at least one dimension");
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), x, builder.value(input).dtype));
  engine::Attributes attributes;
  attributes.axis = x.rank() - 1;
  builder.emit(engine::Op::Softmax, {input}, output, attributes);
  return Error::Ok;
}

constexpr NodeKind kKinds[] = {row<fb::Unary, build_softmax>(fb::Operator::Softmax)};

}  // namespace

constinit const std::span<const NodeKind> softmax_kinds = kKinds;

}  // namespace wb::xnnpack
