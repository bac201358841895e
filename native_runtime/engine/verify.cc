#include "engine/verify.h"

#include <bit>
#include <vector>

#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {
namespace {

constexpr std::size_t kAny = SIZE_MAX;

// How many inputs and outputs an operator has. Inputs from `optional` on may be missing.
struct Signature {
  std::size_t least, most, optional, outputs;
};

Signature signature_of(const Node& node) {
  const auto weights = static_cast<std::size_t>(node.attributes.layers) * (node.attributes.bidirectional ? 8U : 4U);
  switch (node.op) {
    case Op::Pointwise: return {1, 256 - kInputRegister, kAny, 1};
    case Op::MatMul: return {2, 3, 2, 1};
    case Op::Convolution:
    case Op::TransposedConvolution: return {2, 3, 2, 1};
    case Op::LayerNorm:
    case Op::GroupNorm: return {1, 3, 1, 1};
    case Op::RmsNorm: return {1, 2, 1, 1};
    case Op::Attention: return {3, 4, 3, 1};
    case Op::Embedding:
    case Op::Gather: return {2, 2, kAny, 1};
    case Op::Lstm: return {3 + weights, 3 + weights, 1, 3};
    case Op::Gru: return {2 + weights, 2 + weights, 1, 2};
    case Op::Concat: return {1, kAny, kAny, 1};
    default: return {1, 1, kAny, 1};
  }
}

bool may_miss(const Node& node, const Signature& signature, std::size_t input) {
  if (input < signature.optional) return false;
  if (node.op != Op::Lstm && node.op != Op::Gru) return true;
  const std::size_t first = node.op == Op::Lstm ? 3 : 2;  // of the weights, of which only biases may be missing
  return input < first || (input - first) % 4 >= 2;
}

class Verifier {
 public:
  Verifier(const Reporter& report, const Graph& graph) : report_(report), graph_(graph) {}

  Error run() {
    WB_TRY(check_values());
    for (const Node& node : graph_.nodes) {
      const Error error = check_node(node);
      if (error == Error::Ok) continue;
      return report_.fail(error, "in node %zu (%s)", static_cast<std::size_t>(&node - graph_.nodes.data()),
                          name_of(node.op));
    }
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      if (graph_.values[i].kind != ValueKind::Output || written_[i]) continue;
      return report_.fail(Error::InvalidProgram, "output %u (value %zu) is never written", graph_.values[i].external,
                          i);
    }
    return Error::Ok;
  }

 private:
  Error check_values() {
    if (graph_.values.size() >= kNoValue || graph_.inputs > graph_.values.size() ||
        graph_.outputs > graph_.values.size()) {
      return report_.fail(Error::InvalidProgram, "%u inputs and %u outputs among %zu values", graph_.inputs,
                          graph_.outputs, graph_.values.size());
    }
    written_.assign(graph_.values.size(), false);
    std::vector<bool> seen(std::size_t{graph_.inputs} + graph_.outputs);
    std::size_t externals = 0;
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      WB_TRY(check_value(i, value));
      written_[i] = value.kind == ValueKind::Input || value.kind == ValueKind::Constant;
      if (value.kind != ValueKind::Input && value.kind != ValueKind::Output) continue;
      const bool input = value.kind == ValueKind::Input;
      const std::size_t at = (input ? 0 : graph_.inputs) + std::size_t{value.external};
      if (value.external >= (input ? graph_.inputs : graph_.outputs) || seen[at]) {
        return report_.fail(Error::InvalidProgram, "value %zu: %s %u of %u is given twice or out of range", i,
                            input ? "input" : "output", value.external, input ? graph_.inputs : graph_.outputs);
      }
      seen[at] = true;
      ++externals;
    }
    if (externals == seen.size()) return Error::Ok;
    return report_.fail(Error::InvalidProgram, "expected %zu inputs and outputs, found values for %zu", seen.size(),
                        externals);
  }

  Error check_value(std::size_t index, const Value& value) {
    if (value.kind > ValueKind::Temporary || !is_valid(value.dtype)) {
      return report_.fail(Error::InvalidProgram, "value %zu: kind %u, type %d", index,
                          static_cast<unsigned>(value.kind), static_cast<int>(value.dtype));
    }
    if (value.shape.rank > kMaxRank || checked_numel(value.shape) < 0) {
      return report_.fail(Error::InvalidProgram, "value %zu: rank %u, sizes %s are out of range", index,
                          value.shape.rank, ShapeText(value.shape).text);
    }
    if (value.dynamic >> value.shape.rank != 0 || (value.kind == ValueKind::Constant && value.dynamic != 0)) {
      return report_.fail(Error::InvalidProgram, "value %zu: dynamic dimensions 0x%x of rank %u", index, value.dynamic,
                          value.shape.rank);
    }
    WB_TRY(verify_quantization(report_, index, value));
    if (value.kind != ValueKind::Constant || value.shape.numel() == 0) return Error::Ok;
    if (value.data == nullptr || reinterpret_cast<std::uintptr_t>(value.data) % element_size(value.dtype) != 0) {
      return report_.fail(Error::InvalidProgram, "constant %zu: its data is missing or not aligned to its elements",
                          index);
    }
    return Error::Ok;
  }

  Error check_node(const Node& node) {
    if (static_cast<int>(node.op) >= kOpCount) {
      return report_.fail(Error::NotSupported, "operator %u is unknown", static_cast<unsigned>(node.op));
    }
    WB_TRY(verify_attributes(report_, node));
    const Signature signature = signature_of(node);
    if (node.inputs.size() < signature.least || node.inputs.size() > signature.most ||
        node.outputs.size() != signature.outputs) {
      return report_.fail(Error::InvalidProgram, "found %zu inputs and %zu outputs", node.inputs.size(),
                          node.outputs.size());
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue && may_miss(node, signature, i)) continue;
      WB_TRY(check_read(node.inputs[i], "input", i));
    }
    for (std::size_t i = 0; i < node.post_inputs.size(); ++i) WB_TRY(check_read(node.post_inputs[i], "operand", i));
    bool writes = false;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNoValue && node.outputs.size() > 1) continue;
      WB_TRY(check_write(id, i));
      writes = true;
    }
    if (!writes) return report_.fail(Error::InvalidProgram, "it writes nothing");
    WB_TRY(verify_types(report_, graph_, node));
    return verify_program(report_, node);
  }

  Error check_read(ValueId id, const char* what, std::size_t index) {
    if (id < written_.size() && written_[id]) return Error::Ok;
    return report_.fail(Error::InvalidProgram, "%s %zu: value %u %s", what, index, id,
                        id < written_.size() ? "is read before it is written" : "does not exist");
  }

  Error check_write(ValueId id, std::size_t index) {
    if (id < written_.size() && !written_[id]) {
      written_[id] = true;
      return Error::Ok;
    }
    return report_.fail(Error::InvalidProgram, "output %zu: value %u %s", index, id,
                        id < written_.size() ? "can't be written, or is written twice" : "does not exist");
  }

  const Reporter& report_;
  const Graph& graph_;
  std::vector<bool> written_;
};

}  // namespace

Error verify(const Reporter& report, const Graph& graph) { return Verifier(report, graph).run(); }

// Operands are registers that an earlier step made, or inputs that exist.
Error verify_program(const Reporter& report, const Node& node) {
  const bool pointwise = node.op == Op::Pointwise;
  const std::size_t inputs = pointwise ? node.inputs.size() : node.post_inputs.size();
  if (node.post.size() >= kInputRegister || (pointwise && (node.post.empty() || !node.post_inputs.empty())) ||
      inputs > 256U - kInputRegister) {
    return report.fail(Error::InvalidProgram, "a program of %zu steps with %zu operands", node.post.size(), inputs);
  }
  for (std::size_t s = 0; s < node.post.size(); ++s) {
    const PointwiseStep& step = node.post[s];
    bool fits = static_cast<int>(step.fn) < kFnCount && (node.sources.empty() || step.source < node.sources.size());
    for (int i = 0; fits && i < arity_of(step.fn); ++i) {
      const std::uint8_t operand = step.operands[i];
      fits = operand < kInputRegister ? operand <= s : operand - kInputRegister < static_cast<int>(inputs);
    }
    if (fits) continue;
    return report.fail(Error::InvalidProgram, "step %zu: function %u with operands %u, %u, %u, source %u", s,
                       static_cast<unsigned>(step.fn), step.operands[0], step.operands[1], step.operands[2],
                       step.source);
  }
  return Error::Ok;
}

}  // namespace wb::engine
