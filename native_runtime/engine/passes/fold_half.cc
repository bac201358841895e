// float16: values between nodes are float32, with a Convert where float16 comes in or goes out. Constants are widened.
#include <algorithm>
#include <bit>

#include "engine/passes/draft.h"

namespace wb::engine {
namespace {

float widen(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  std::uint32_t exponent = half >> 10 & 0x1fU;
  std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent == 0) {
    if (fraction == 0) return std::bit_cast<float>(sign);
    exponent = 1;
    for (; (fraction & 0x400U) == 0; fraction <<= 1) --exponent;  // may wrap: the sum below is what counts
    fraction &= 0x3ffU;
  }
  return std::bit_cast<float>(sign | (exponent + 112U) << 23 | fraction << 13);
}

Node make_convert(ValueId from, ValueId to) {
  Node node;
  node.op = Op::Convert;
  node.inputs = {from};
  node.outputs = {to};
  return node;
}

}  // namespace

Error fold_half(Draft& draft) {
  std::vector<Node> first;
  std::vector<Node> last;
  for (ValueId id = 0, count = static_cast<ValueId>(draft.graph.values.size()); id < count; ++id) {
    if (draft.value(id).dtype != ScalarType::Half) continue;
    const Value value = draft.value(id);
    if (value.kind == ValueKind::Temporary) draft.value(id).dtype = ScalarType::Float;
    if (value.kind == ValueKind::Constant) {
      const auto numel = static_cast<std::size_t>(value.shape.numel());
      auto* to = static_cast<float*>(draft.own(numel * sizeof(float)));
      if (to == nullptr) {
        return draft.report.fail(Error::MemoryAllocationFailed, "no memory for a constant of %zu elements", numel);
      }
      const auto* from = static_cast<const std::uint16_t*>(value.data);
      for (std::size_t i = 0; i < numel; ++i) to[i] = widen(from[i]);
      draft.value(id).dtype = ScalarType::Float;
      draft.value(id).data = to;
    }
    if (value.kind != ValueKind::Input && value.kind != ValueKind::Output) continue;
    const ValueId wide = draft.add_value(value.shape, ScalarType::Float, value.dynamic);
    draft.replace(id, wide, Permutation::identity(value.shape.rank));
    if (value.kind == ValueKind::Input) {
      first.push_back(make_convert(id, wide));
    } else {
      for (Node& node : draft.graph.nodes) std::ranges::replace(node.outputs, id, wide);
      last.push_back(make_convert(wide, id));
    }
  }
  std::vector<Node>& nodes = draft.graph.nodes;
  for (Node& node : nodes) {
    const bool same = node.op == Op::Convert && draft.value(node.inputs[0]).dtype == draft.value(node.outputs[0]).dtype;
    if (same) node.op = Op::Copy;
  }
  nodes.insert(nodes.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
  nodes.insert(nodes.end(), std::make_move_iterator(last.begin()), std::make_move_iterator(last.end()));
  draft.index();
  return Error::Ok;
}

}  // namespace wb::engine
