// Brings graphs that quantize and dequantize between float nodes (as PyTorch's quantized graphs do) to nodes that read
// and write quantized values:
//
//   dequantize(q) -> move             becomes  move(q) -> dequantize
//   move -> quantize                  becomes  quantize -> move
//   dequantize -> op -> quantize      becomes  op on integers
//
// Nothing is computed otherwise than before: every rounding stays. What no operator has a method for is taken apart
// again by legalize_quantized.
#include <algorithm>
#include <unordered_map>

#include "engine/passes/quantized.h"

namespace wb::engine {
namespace {

using Kind = Quantization::Kind;

bool is_product(Op op) { return op == Op::MatMul || op == Op::Convolution || op == Op::TransposedConvolution; }

bool may_write_integers(const Node& node) {
  switch (node.op) {
    case Op::Pointwise:
    case Op::MatMul:
    case Op::Convolution:
    case Op::TransposedConvolution:
    case Op::AvgPool:
    case Op::MaxPool:
    case Op::Reduce:
    case Op::Concat:
    case Op::Pad:
    case Op::Expand:
    case Op::Slice: return node.outputs.size() == 1;
    default: return false;
  }
}

// May the node read this quantized value in the place of its numbers?
bool may_read_integers(const Draft& draft, const Node& node, std::size_t input, const Value& value) {
  const Kind kind = value.quantization.kind;
  if (is_product(node.op)) {
    if (input == 0) return kind == Kind::PerRow || is_per_tensor(value);
    if (input == 2) return value.kind == ValueKind::Constant;
    return value.kind == ValueKind::Constant || is_per_tensor(value);
  }
  const bool moves = moves_elements(node) && is_quantized(draft.value(node.outputs[0]));
  if (moves) return is_per_tensor(value) && input < moved_inputs(node);
  if (node.op == Op::Embedding) return input == 0 && value.kind == ValueKind::Constant;
  const bool computes =
      node.op == Op::Pointwise || node.op == Op::AvgPool || node.op == Op::MaxPool || node.op == Op::Reduce;
  return is_per_tensor(value) && (computes || node.op == Op::Quantize);
}

class Folder {
 public:
  explicit Folder(Draft& draft) : draft_(draft) {}

  void run() {
    remember_dequantized();
    sink_dequantize();
    join_equal();
    hoist_quantize();
    fold_dequantize();
    fold_quantize();
    fold_dequantize();  // what moves elements of several kinds into integers
    hand_over_sources();
  }

 private:
  // ---- dequantize(q): what each of its readers may read instead ------------------------------------------------

  void remember_dequantized() {
    for (const Node& node : draft_.graph.nodes) {
      if (node.op == Op::Dequantize) remember(node);
    }
  }

  void remember(const Node& node) {
    const ValueId numbers = node.outputs[0];
    if (draft_.value(numbers).dtype != ScalarType::Float) return;
    integers_[numbers] = node.inputs[0];
    if (draft_.value(node.inputs[0]).kind != ValueKind::Constant) {
      draft_.move_taps_of_numbers(numbers, node.inputs[0]);
    }
  }

  // kNoValue for a value that is no Dequantize node's.
  [[nodiscard]] ValueId integers_of(ValueId id) const {
    const auto found = integers_.find(id);
    return found == integers_.end() ? kNoValue : found->second;
  }

  [[nodiscard]] bool may_sink(const Node& node) const {
    if (!moves_elements(node) || draft_.value(node.outputs[0]).dtype != ScalarType::Float) return false;
    // Other fillings than 0 need not be among the numbers that the integers stand for.
    if (node.op == Op::Pad && node.attributes.pad_mode == Attributes::PadMode::Constant && node.attributes.fill != 0) {
      return false;
    }
    const ValueId first = integers_of(node.inputs[0]);
    if (first == kNoValue || !is_per_tensor(draft_.value(first))) return false;
    for (std::size_t i = 1; i < moved_inputs(node); ++i) {
      const ValueId other = integers_of(node.inputs[i]);
      if (other == kNoValue || !same_elements(draft_.value(first), draft_.value(other))) return false;
    }
    return true;
  }

  void sink_dequantize() {
    std::vector<Node> nodes;
    for (Node& node : draft_.graph.nodes) {
      if (!may_sink(node)) {
        nodes.push_back(std::move(node));
        continue;
      }
      const ValueId out = node.outputs[0];
      const Value integers = draft_.value(integers_of(node.inputs[0]));
      Value moved = draft_.value(out);
      moved.kind = ValueKind::Temporary;
      moved.dtype = integers.dtype;
      moved.quantization = integers.quantization;
      node.outputs[0] = draft_.add_like(moved);
      for (std::size_t i = 0; i < moved_inputs(node); ++i) read_integers(node, i);
      Node numbers = make_conversion(draft_, node.outputs[0], out);
      remember(numbers);
      nodes.push_back(std::move(node));
      nodes.push_back(std::move(numbers));
    }
    draft_.graph.nodes = std::move(nodes);
    draft_.index();
  }

  // The node's name is one of its results: nodes move in memory.
  void read_integers(Node& node, std::size_t input) {
    first_reader_.try_emplace(node.inputs[input], node.outputs[0]);
    node.inputs[input] = integers_.at(node.inputs[input]);
  }

  void fold_dequantize() {
    for (Node& node : draft_.graph.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue) continue;
        const ValueId integers = integers_of(node.inputs[i]);
        if (integers == kNoValue || !may_read_integers(draft_, node, i, draft_.value(integers))) continue;
        read_integers(node, i);
      }
      if (node.op == Op::Quantize) cancel(node);
    }
    draft_.sweep();
    draft_.index();
  }

  // quantize(dequantize(q)) with the same parameters is q.
  void cancel(Node& node) {
    const ValueId in = node.inputs[0];
    const ValueId out = node.outputs[0];
    if (!same_elements(draft_.value(in), draft_.value(out))) return;
    if (draft_.value(out).kind != ValueKind::Temporary) {
      node.op = Op::Copy;
      return;
    }
    replaced_[out] = in;
    forget(out, in);
    node.outputs.clear();
    draft_.replace(out, in, Permutation::identity(draft_.value(out).shape.rank));
  }

  // Integers that are to be found elsewhere now.
  void forget(ValueId integers, ValueId instead) {
    for (auto& [numbers, found] : integers_) {
      if (found == integers) found = instead;
    }
  }

  // ---- quantize --------------------------------------------------------------------------------------------------

  // Nodes that make the same integers of the same numbers.
  void join_equal() {
    std::unordered_map<ValueId, std::vector<ValueId>> made;  // of numbers
    for (Node& node : draft_.graph.nodes) {
      if (node.op != Op::Quantize || !is_per_tensor(draft_.value(node.outputs[0]))) continue;
      const ValueId out = node.outputs[0];
      std::vector<ValueId>& others = made[node.inputs[0]];
      const auto same =
          std::ranges::find_if(others, [&](ValueId id) { return same_elements(draft_.value(id), draft_.value(out)); });
      if (same == others.end() || draft_.value(out).kind != ValueKind::Temporary) {
        others.push_back(out);
        continue;
      }
      const ValueId kept = *same;
      node.outputs.clear();
      draft_.replace(out, kept, Permutation::identity(draft_.value(out).shape.rank));
      forget(out, kept);
    }
    draft_.sweep();
    draft_.index();
  }

  // The node that writes `numbers`, if nothing but `quantize` reads them.
  Node* sole_producer(const Node& quantize) {
    const ValueId numbers = quantize.inputs[0];
    const Value& value = draft_.value(numbers);
    if (value.kind != ValueKind::Temporary || value.dtype != ScalarType::Float || draft_.readers(numbers) != 1) {
      return nullptr;
    }
    return draft_.producer(numbers);
  }

  void hoist_quantize() {
    std::vector<Node>& nodes = draft_.graph.nodes;
    for (std::size_t n = nodes.size(); n-- > 0;) {
      Node& quantize = nodes[n];
      if (quantize.op != Op::Quantize || !is_per_tensor(draft_.value(quantize.outputs[0]))) continue;
      Node* move = sole_producer(quantize);
      if (move == nullptr || !move->post.empty()) continue;
      if (move->op != Op::Transpose && move->op != Op::Reshape && move->op != Op::Copy && move->op != Op::Expand) {
        continue;
      }
      const ValueId from = move->inputs[0];
      if (draft_.value(from).dtype != ScalarType::Float || draft_.value(from).kind == ValueKind::Constant) continue;
      const Value out = draft_.value(quantize.outputs[0]);
      const ValueId between =
          draft_.add_value(draft_.value(from).shape, out.dtype, draft_.value(from).dynamic, out.quantization);
      Node first = make_conversion(draft_, from, between);
      first.sources = std::move(quantize.sources);
      Node second = std::move(*move);
      second.inputs[0] = between;
      second.outputs = quantize.outputs;
      // What quantize gives is to be found before the move, which may fall away.
      if (second.op == Op::Reshape) draft_.move_taps_reshaped(second.outputs[0], between);
      if (second.op == Op::Transpose) {
        draft_.move_taps(second.outputs[0], between, Permutation::of(second, out.shape.rank).inverse());
      }
      replaced_[quantize.inputs[0]] = second.outputs[0];
      *move = std::move(first);
      quantize = std::move(second);
      draft_.index();
    }
  }

  void fold_quantize() {
    for (Node& quantize : draft_.graph.nodes) {
      if (quantize.op != Op::Quantize || !is_per_tensor(draft_.value(quantize.outputs[0]))) continue;
      Node* node = sole_producer(quantize);
      if (node == nullptr || !may_write_integers(*node)) continue;
      const ValueId numbers = quantize.inputs[0];
      const ValueId out = quantize.outputs[0];
      for (Tap& tap : draft_.taps) {
        if (tap.value != numbers) continue;
        tap.value = out;
        if (tap.post_count == Tap::kWhole) tap.post_count = static_cast<std::uint32_t>(node->post.size());
      }
      replaced_[numbers] = out;
      node->outputs[0] = out;
      node->sources.insert(node->sources.end(), quantize.sources.begin(), quantize.sources.end());
      quantize.outputs.clear();
    }
    draft_.sweep();
    draft_.index();
  }

  // ---- the trace -------------------------------------------------------------------------------------------------

  // A Dequantize node that nobody needs any more is part of the first one that read its numbers.
  void hand_over_sources() {
    for (Node& node : draft_.graph.nodes) {
      if (node.op != Op::Dequantize || node.sources.empty() || draft_.readers(node.outputs[0]) != 0) continue;
      if (draft_.value(node.outputs[0]).kind != ValueKind::Temporary) continue;
      const auto found = first_reader_.find(node.outputs[0]);
      if (found == first_reader_.end()) continue;
      ValueId id = found->second;
      for (auto next = replaced_.find(id); next != replaced_.end(); next = replaced_.find(id)) id = next->second;
      Node* reader = draft_.producer(id);
      if (reader == nullptr || reader == &node) continue;
      take_sources(*reader, node.sources);
      node.sources.clear();
    }
  }

  Draft& draft_;
  std::unordered_map<ValueId, ValueId> integers_;      // of the result of a Dequantize node
  std::unordered_map<ValueId, ValueId> first_reader_;  // of such a result: a result of the node that read it first
  std::unordered_map<ValueId, ValueId> replaced_;      // results that fell away: what is there instead
};

}  // namespace

void fold_quantized(Draft& draft) {
  const bool any = std::ranges::any_of(
      draft.graph.nodes, [](const Node& node) { return node.op == Op::Quantize || node.op == Op::Dequantize; });
  if (!any) return;
  draft.index();
  Folder(draft).run();
  (void)settle_moves(draft);
  remove_dead_code(draft);
}

}  // namespace wb::engine
