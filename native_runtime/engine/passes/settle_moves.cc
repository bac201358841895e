// Nodes that move elements do nothing but that: where the quantization of an input differs from that of the result, a
// node of its own changes it. Before what grows (concatenations, paddings), else behind.
#include <algorithm>

#include "engine/passes/quantized.h"

namespace wb::engine {

bool moves_elements(const Node& node) {
  switch (node.op) {
    case Op::Transpose:
    case Op::Reshape:
    case Op::Expand:
    case Op::Concat:
    case Op::Slice:
    case Op::Pad:
    case Op::Gather:
    case Op::Copy:
    case Op::MaxPool: return node.post.empty();
    default: return false;
  }
}

std::size_t moved_inputs(const Node& node) { return node.op == Op::Concat ? node.inputs.size() : 1; }

Node make_conversion(const Draft& draft, ValueId from, ValueId to) {
  Node node;
  node.op = is_quantized(draft.value(to)) ? Op::Quantize : Op::Dequantize;
  node.inputs = {from};
  node.outputs = {to};
  return node;
}

void take_sources(Node& node, const std::vector<std::int32_t>& sources) {
  node.sources.insert(node.sources.begin(), sources.begin(), sources.end());
  for (PointwiseStep& step : node.post) step.source += static_cast<std::uint32_t>(sources.size());
}

namespace {

bool grows(const Node& node) { return node.op == Op::Concat || node.op == Op::Pad || node.op == Op::Expand; }

// Of the same type, but one side is plain: the integers themselves are what is meant.
bool reinterprets(const Draft& draft, const Node& node) {
  const Value& in = draft.value(node.inputs[0]);
  const Value& out = draft.value(node.outputs[0]);
  return node.op == Op::Copy && in.dtype == out.dtype && is_quantized(in) != is_quantized(out);
}

class Settler {
 public:
  explicit Settler(Draft& draft) : draft_(draft) {}

  void run() {
    std::vector<Node> old = std::move(draft_.graph.nodes);
    for (Node& node : old) {
      if (moves_elements(node) && !reinterprets(draft_, node)) {
        settle(std::move(node));
      } else {
        nodes_.push_back(std::move(node));
      }
    }
    draft_.graph.nodes = std::move(nodes_);
    draft_.index();
  }

 private:
  void settle(Node&& node) {
    const ValueId out = node.outputs[0];
    if (grows(node)) {
      bool same = true;
      for (ValueId& id : node.inputs) {
        const ValueId from = id;
        id = converted(id, draft_.value(out));
        same = same && id == from;
      }
      settle_taps(out, same ? out : kNoValue);
      nodes_.push_back(std::move(node));
      return;
    }
    const Value in = draft_.value(node.inputs[0]);
    if (same_elements(in, draft_.value(out))) {
      settle_taps(out, out);
      nodes_.push_back(std::move(node));
      return;
    }
    Value between = draft_.value(out);
    between.dtype = in.dtype;
    between.quantization = in.quantization;
    node.outputs[0] = draft_.add_like(between);
    const ValueId moved = node.outputs[0];
    settle_taps(out, moved);
    nodes_.push_back(std::move(node));
    nodes_.push_back(make_conversion(draft_, moved, out));
  }

  // What the node gives before its result is quantized: the numbers of `moved`. Nowhere, if its inputs are rounded
  // before.
  void settle_taps(ValueId out, ValueId moved) {
    std::erase_if(draft_.taps, [&](Tap& tap) {
      if (tap.value != out || tap.post_count == Tap::kWhole) return false;
      if (moved == kNoValue) return true;
      tap.value = moved;
      tap.post_count = Tap::kWhole;
      tap.numbers = is_quantized(draft_.value(moved));
      return false;
    });
  }

  ValueId converted(ValueId id, const Value& out) {
    const Value value = draft_.value(id);
    if (same_elements(value, out)) return id;
    const ValueId to = draft_.add_value(value.shape, out.dtype, value.dynamic, out.quantization);
    nodes_.push_back(make_conversion(draft_, id, to));
    return to;
  }

  Draft& draft_;
  std::vector<Node> nodes_;
};

}  // namespace

Error settle_moves(Draft& draft) {
  const bool any = std::ranges::any_of(draft.graph.values, [](const Value& value) { return is_quantized(value); });
  if (any) Settler(draft).run();
  return Error::Ok;
}

}  // namespace wb::engine
