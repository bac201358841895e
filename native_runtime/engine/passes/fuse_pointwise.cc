// Joins pointwise nodes with what feeds them: chains and trees of them become one program, and a program becomes the
// epilogue of the matrix product, convolution, pool or normalization whose result it starts from.
#include <algorithm>

#include "engine/infer/infer.h"
#include "engine/operator.h"
#include "engine/passes/draft.h"

namespace wb::engine {
namespace {

constexpr std::size_t kMostSteps = 16;
constexpr std::size_t kMostInputs = 20;
constexpr std::size_t kMostOperands = 8;  // of an epilogue

bool gives_bool(Fn fn) { return fn == Fn::LogicalNot || fn == Fn::IsNan || (fn >= Fn::Eq && fn <= Fn::LogicalXor); }

// A program computes in float32: what it keeps between two steps must be that or a truth value.
bool keeps(const Node& node, const Value& value) {
  return value.dtype == ScalarType::Float ||
         (value.dtype == ScalarType::Bool && node.op == Op::Pointwise && gives_bool(node.post.back().fn));
}

bool is_plain_float(const Value& value) { return value.dtype == ScalarType::Float; }
bool is_small(const Value& value) {
  return value.dtype == ScalarType::Float || value.dtype == ScalarType::Bool || value.quantization.present();
}

bool expensive(Op op) { return op == Op::MatMul || op == Op::Convolution || op == Op::TransposedConvolution; }

class Fuser {
 public:
  explicit Fuser(Draft& draft) : draft_(draft), nodes_(draft.graph.nodes) {}

  void run() {
    draft_.index();
    readers_.resize(draft_.graph.values.size());
    for (ValueId id = 0; id < readers_.size(); ++id) readers_[id] = draft_.readers(id);
    for (Node& node : nodes_) {
      if (node.op != Op::Pointwise) continue;
      while (join_producer(node)) {
      }
      become_epilogue(node);
    }
    draft_.sweep();
    draft_.index();
  }

 private:
  // The node that writes `id`, if nobody but the one who asks reads it.
  Node* sole_producer(ValueId id) {
    if (draft_.value(id).kind != ValueKind::Temporary || readers_[id] != 1) return nullptr;
    Node* node = draft_.producer(id);
    return node != nullptr && node->outputs.size() == 1 ? node : nullptr;
  }

  // `from` goes into `node`: values that both read have one reader less, however often each reads them.
  void forget_reader(const Node& from, const Node& node) {
    std::vector<ValueId> read = from.inputs;
    read.insert(read.end(), from.post_inputs.begin(), from.post_inputs.end());
    std::ranges::sort(read);
    read.erase(std::ranges::unique(read).begin(), read.end());
    for (const ValueId id : read) {
      if (id != kNoValue && std::ranges::find(node.inputs, id) != node.inputs.end()) --readers_[id];
    }
  }

  bool same_shape(ValueId a, ValueId b) {
    return draft_.value(a).shape == draft_.value(b).shape && draft_.value(a).dynamic == draft_.value(b).dynamic;
  }

  // What the program gives after fewer steps must be a value that its result's type can hold: it may be tapped. In the
  // place of integers that stand for numbers, numbers are handed over.
  bool stores(ValueId between, ValueId out) {
    if (draft_.value(out).quantization.present()) return is_plain_float(draft_.value(between));
    return draft_.value(out).dtype == ScalarType::Float || draft_.value(between).dtype == draft_.value(out).dtype;
  }

  // ---- a program into a program ------------------------------------------------------------------------------

  bool join_producer(Node& node) {
    for (const ValueId id : node.inputs) {
      Node* from = sole_producer(id);
      if (from == nullptr || from->op != Op::Pointwise || !may_join(*from, node, id)) continue;
      join(*from, node, id);
      return true;
    }
    return false;
  }

  bool may_join(const Node& from, const Node& node, ValueId between) {
    const auto floats = [&](ValueId id) { return is_small(draft_.value(id)); };
    return from.post.size() + node.post.size() <= kMostSteps &&
           from.inputs.size() + node.inputs.size() <= kMostInputs + 1 && same_shape(between, node.outputs[0]) &&
           keeps(from, draft_.value(between)) && stores(between, node.outputs[0]) &&
           std::ranges::all_of(from.inputs, floats);
  }

  void join(Node& from, Node& node, ValueId between) {
    Node result = from;
    const auto steps = static_cast<std::uint32_t>(from.post.size());
    std::vector<std::uint8_t> registers;  // of each input of `node` in the new program
    for (const ValueId id : node.inputs) {
      if (id == between) {
        registers.push_back(static_cast<std::uint8_t>(steps));
        continue;
      }
      auto at = std::ranges::find(result.inputs, id);
      if (at == result.inputs.end()) at = result.inputs.insert(at, id);
      registers.push_back(static_cast<std::uint8_t>(kInputRegister + (at - result.inputs.begin())));
    }
    forget_reader(from, node);
    append(node, registers, result);
    draft_.shift_taps(node.outputs[0], between, steps);
    result.outputs = node.outputs;
    from.outputs.clear();
    node = std::move(result);
  }

  // Adds the steps of `node`, whose input k is register registers[k] of the result.
  static void append(const Node& node, const std::vector<std::uint8_t>& registers, Node& result) {
    const auto steps = static_cast<std::uint8_t>(result.post.size());
    const auto sources = static_cast<std::uint32_t>(result.sources.size());
    for (PointwiseStep step : node.post) {
      for (std::uint8_t& operand : step.operands) {
        if (operand >= kInputRegister) {
          operand = operand - kInputRegister < static_cast<int>(registers.size()) ? registers[operand - kInputRegister]
                                                                                  : std::uint8_t{0};
        } else {
          operand = operand == 0 ? registers[0] : static_cast<std::uint8_t>(operand + steps);
        }
      }
      step.source += sources;
      result.post.push_back(step);
    }
    result.sources.insert(result.sources.end(), node.sources.begin(), node.sources.end());
  }

  // ---- a program into an epilogue ----------------------------------------------------------------------------

  void become_epilogue(Node& node) {
    Node* best = nullptr;
    for (const ValueId id : node.inputs) {
      Node* from = sole_producer(id);
      if (from == nullptr || from->op == Op::Pointwise || !takes(*from, node, id)) continue;
      const bool better = best == nullptr || expensive(from->op) > expensive(best->op) ||
                          (expensive(from->op) == expensive(best->op) && from > best);
      if (better) best = from;
    }
    if (best == nullptr) return;
    const ValueId between = best->outputs[0];
    const auto steps = static_cast<std::uint32_t>(best->post.size());
    Node result = extended(*best, node, between);
    draft_.shift_taps(node.outputs[0], between, steps);
    result.outputs = node.outputs;
    forget_reader(*best, node);
    best->outputs.clear();
    node = std::move(result);
  }

  Node extended(const Node& from, const Node& node, ValueId between) {
    Node result = from;
    std::vector<std::uint8_t> registers;
    for (const ValueId id : node.inputs) {
      if (id == between) {
        registers.push_back(static_cast<std::uint8_t>(from.post.size()));
        continue;
      }
      auto at = std::ranges::find(result.post_inputs, id);
      if (at == result.post_inputs.end()) at = result.post_inputs.insert(at, id);
      registers.push_back(static_cast<std::uint8_t>(kInputRegister + (at - result.post_inputs.begin())));
    }
    append(node, registers, result);
    return result;
  }

  bool takes(const Node& from, const Node& node, ValueId between) {
    const Operator* op = find_operator(from.op);
    if (op == nullptr || op->fuses == nullptr || !same_shape(between, node.outputs[0])) return false;
    const Value& out = draft_.value(node.outputs[0]);
    if (!is_plain_float(draft_.value(between)) || !(is_plain_float(out) || out.quantization.present())) return false;
    for (const ValueId id : node.inputs) {
      if (id != between && !fits_epilogue(draft_.value(id), draft_.value(between))) return false;
    }
    if (!keeps_integers(*op, from, node, between)) return false;
    const Node all = extended(from, node, between);
    if (all.post_inputs.size() > kMostOperands) return false;
    Node taken = all;
    taken.post.resize(from.post.size());
    for (std::size_t i = from.post.size(); i < all.post.size(); ++i) {
      if (!op->fuses(taken, all.post[i])) return false;
      taken.post.push_back(all.post[i]);
    }
    return true;
  }

  // A node that is computed on integers must not lose that by what it takes; others read and write numbers.
  bool keeps_integers(const Operator& op, const Node& from, const Node& node, ValueId between) {
    Node all = extended(from, node, between);
    all.outputs = node.outputs;
    const auto quantized = [&](ValueId id) { return id != kNoValue && draft_.value(id).quantization.present(); };
    if (std::ranges::none_of(all.inputs, quantized) && std::ranges::none_of(all.post_inputs, quantized) &&
        std::ranges::none_of(all.outputs, quantized)) {
      return true;
    }
    if (op.quantized != nullptr && op.quantized(draft_.graph, all)) return true;
    if (std::ranges::any_of(all.post_inputs, quantized)) return false;
    return op.quantized == nullptr || !op.quantized(draft_.graph, from);
  }

  // The operand has the result's shape, or is a vector along its last dimension, or one element - whatever the sizes.
  static bool fits_epilogue(const Value& operand, const Value& out) {
    if (!is_small(operand) || operand.dtype == ScalarType::Bool || !broadcasts_to(operand.shape, out.shape))
      return false;
    if (operand.shape == out.shape) return operand.dynamic == out.dynamic;
    for (int d = 0; d + 1 < operand.shape.rank; ++d) {
      if (operand.shape.sizes[d] != 1) return operand.dynamic == 0 && out.dynamic == 0 && same_numel(operand, out);
    }
    return true;
  }
  static bool same_numel(const Value& a, const Value& b) { return a.shape.numel() == b.shape.numel(); }

  Draft& draft_;
  std::vector<Node>& nodes_;
  std::vector<std::uint32_t> readers_;
};

}  // namespace

void fuse_pointwise(Draft& draft) { Fuser(draft).run(); }

void split_programs(Draft& draft) {
  std::vector<Node> nodes;
  for (Node& node : draft.graph.nodes) {
    const Operator* op = find_operator(node.op);
    bool taken = true;
    Node prefix = node;
    prefix.post.clear();
    for (const PointwiseStep& step : node.post) {
      taken = taken && op != nullptr && op->fuses != nullptr && op->fuses(prefix, step);
      prefix.post.push_back(step);
    }
    if (node.op == Op::Pointwise || node.post.empty() || taken) {
      nodes.push_back(std::move(node));
      continue;
    }
    const ValueId out = node.outputs[0];
    const Value value = draft.value(out);
    const ScalarType dtype = value.quantization.present() ? ScalarType::Float : value.dtype;
    const ValueId between = draft.add_value(value.shape, dtype, value.dynamic);
    Node program;
    program.op = Op::Pointwise;
    program.inputs = {between};
    program.inputs.insert(program.inputs.end(), node.post_inputs.begin(), node.post_inputs.end());
    program.outputs = {out};
    program.post = std::move(node.post);
    for (PointwiseStep& step : program.post) {
      for (std::uint8_t& operand : step.operands) {
        if (operand >= kInputRegister) ++operand;
      }
    }
    program.sources = node.sources;
    node.outputs[0] = between;
    node.post.clear();
    node.post_inputs.clear();
    nodes.push_back(std::move(node));
    nodes.push_back(std::move(program));
  }
  draft.graph.nodes = std::move(nodes);
  draft.index();
}

}  // namespace wb::engine
