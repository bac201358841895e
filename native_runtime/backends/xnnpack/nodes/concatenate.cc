#include "backends/xnnpack/nodes/kinds.h"

namespace wb::xnnpack {
namespace {

template <int total>
Error build_concatenate(Builder& builder, const fb::Concatenate& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  static constexpr const char* kNames[] = {"input1_id", "input2_id", "input3_id", "input4_id", "input5_id"};
  const std::uint32_t ids[] = {node.input1_id(), node.input2_id(), node.input3_id(), node.input4_id(),
                               node.input5_id()};
  std::vector<ValueId> inputs;
  for (int i = 0; i < total; ++i) {
    WB_ASSIGN(const ValueId input, builder.input(kNames[i], ids[i]));
    inputs.push_back(input);
    WB_TRY(builder.same_dtype({inputs[0], input}));
  }
  Extent sum = builder.extent(inputs[0]);
  if (node.axis() >= static_cast<std::uint32_t>(sum.rank())) {
    return builder.fail(Error::InvalidProgram, "axis %u of values of sizes %s", node.axis(), text_of(sum).c_str());
  }
  const auto axis = static_cast<int>(node.axis());
  for (int i = 1; i < total; ++i) {
    const Extent next = builder.extent(inputs[static_cast<std::size_t>(i)]);
    bool fits = next.rank() == sum.rank();
    for (int d = 0; fits && d < sum.rank(); ++d) fits = d == axis || next.size(d) == sum.size(d);
    if (!fits) {
      return builder.fail(Error::InvalidProgram, "%s: sizes %s beside %s along axis %d", kNames[i],
                          text_of(next).c_str(), text_of(sum).c_str(), axis);
    }
    for (int d = 0; d < sum.rank(); ++d) {
      if (d == axis) {
        sum.set(d, sum.size(d) + next.size(d), sum.is_dynamic(d) || next.is_dynamic(d));
      } else {
        sum.set(d, sum.size(d), sum.is_dynamic(d) && next.is_dynamic(d));
      }
    }
  }
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), sum, builder.value(inputs[0]).dtype));
  engine::Attributes attributes;
  attributes.axis = axis;
  builder.emit(engine::Op::Concat, std::move(inputs), output, attributes);
  return Error::Ok;
}

constexpr NodeKind kKinds[] = {
    row<fb::Concatenate, build_concatenate<2>>(fb::Operator::Concatenate2),
    row<fb::Concatenate, build_concatenate<3>>(fb::Operator::Concatenate3),
    row<fb::Concatenate, build_concatenate<4>>(fb::Operator::Concatenate4),
    row<fb::Concatenate, build_concatenate<5>>(fb::Operator::Concatenate5),
};

}  // namespace

constinit const std::span<const NodeKind> concatenate_kinds = kKinds;

}  // namespace wb::xnnpack
