#include "engine/describe.h"

#include "engine/names.h"
#include "engine/program.h"

namespace wb::engine {
namespace {

std::string place_of(const Program& program, ValueId id) {
  const Placement& placement = program.placements[id];
  const std::string offset = placement.offset == 0 ? "" : "+" + std::to_string(placement.offset);
  switch (placement.kind) {
    case Placement::Kind::None: return "nowhere";
    case Placement::Kind::Input: return "input " + std::to_string(placement.external) + offset;
    case Placement::Kind::Output: return "output " + std::to_string(placement.external) + offset;
    case Placement::Kind::Constant: return "constant" + offset;
    case Placement::Kind::Arena: return "arena " + std::to_string(placement.offset);
  }
  return "";
}

std::string quantized_text(const Quantization& q) {
  constexpr const char* kKinds[] = {"", "", "/channel", "/group", "/row"};
  if (!q.present()) return "";
  return std::string("q") + std::to_string(q.bits) + kKinds[static_cast<int>(q.kind)] + " ";
}

std::string value_text(const Program& program, ValueId id) {
  if (id == kNoValue) return "-";
  const Value& value = program.graph.values[id];
  std::string sizes = ShapeText(value.shape).text;
  if (value.kind == ValueKind::Constant) return "constant " + quantized_text(value.quantization) + sizes;
  std::string text = "v" + std::to_string(id) + " ";
  if (value.dtype != ScalarType::Float) text += std::string(name_of(value.dtype)) + " ";
  return text + quantized_text(value.quantization) + sizes + " @" + place_of(program, id);
}

std::string node_text(const Node& node) {
  std::string text = node.op == Op::Pointwise ? "" : name_of(node.op);
  for (const PointwiseStep& step : node.post) {
    if (!text.empty()) text += "+";
    text += name_of(step.fn);
  }
  for (std::size_t i = 0; i < node.sources.size(); ++i) text += (i == 0 ? " #" : "+") + std::to_string(node.sources[i]);
  return text;
}

std::string attributes_text(const Node& node, int rank) {
  const Attributes& a = node.attributes;
  std::string text;
  if (node.op == Op::Transpose) {
    text = " (";
    for (int d = 0; d < rank; ++d) text += (d == 0 ? "" : " ") + std::to_string(a.permutation[d]);
    text += ")";
  }
  if (node.op == Op::MatMul && a.transpose_b) text = " (b transposed)";
  if (node.op == Op::Attention) {
    constexpr const char* kKinds[] = {"outer", "inner", "columns"};
    text = " (";
    for (int i = 0; i < 4; ++i) {
      text += (i == 0 ? "" : " ") + std::string(kKinds[static_cast<int>(a.head_orders[i].kind)]);
      if (a.head_orders[i].kind == HeadOrder::Kind::Columns) text += "@" + std::to_string(a.head_orders[i].begin);
    }
    text += ")";
  }
  return text;
}

}  // namespace

std::string describe(const Program& program) {
  std::string text;
  for (std::uint32_t n = 0; n < program.graph.nodes.size(); ++n) {
    const Node& node = program.graph.nodes[n];
    text += std::to_string(n) + (program.memory.skipped[n] ? " = " : " ") + node_text(node);
    text += attributes_text(node, program.graph.values[node.inputs[0]].shape.rank) + ":";
    bool first = true;
    const auto add = [&](ValueId id) {
      text += (first ? " " : ", ") + value_text(program, id);
      first = false;
    };
    for (const ValueId id : node.inputs) add(id);
    for (const ValueId id : node.post_inputs) add(id);
    text += " ->";
    first = true;
    for (const ValueId id : node.outputs) add(id);
    text += "\n";
  }
  return text + "arena " + std::to_string(program.footprint.arena) + "\n";
}

}  // namespace wb::engine
