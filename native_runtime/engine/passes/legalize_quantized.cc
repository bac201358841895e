// What no operator computes on integers is computed on numbers: Dequantize nodes before it, a Quantize node behind it.
// Constants are dequantized here and now.
#include <unordered_map>

#include "engine/operator.h"
#include "engine/passes/quantized.h"

namespace wb::engine {
namespace {

using Kind = Quantization::Kind;

std::int32_t integer_at(const Value& value, std::int64_t row, std::int64_t column, std::int64_t columns) {
  const std::int64_t i = row * columns + column;
  if (value.quantization.bits == 4) {
    const auto* bytes = static_cast<const std::uint8_t*>(value.data) + row * ((columns + 1) / 2);
    return bytes[column / 2] >> (column % 2 * 4) & 15;
  }
  switch (value.dtype) {
    case ScalarType::Byte: return static_cast<const std::uint8_t*>(value.data)[i];
    case ScalarType::Char: return static_cast<const std::int8_t*>(value.data)[i];
    default: return static_cast<const std::int32_t*>(value.data)[i];
  }
}

// Scale and zero point of the element at (row, column) of all rows of the last dimension.
class Parameters {
 public:
  Parameters(const Value& value, std::int64_t columns) : q_(value.quantization), columns_(columns) {
    if (q_.kind == Kind::PerGroup) groups_ = (columns - 1) / q_.group + 1;
    if (q_.kind != Kind::PerChannel) return;
    channels_ = value.shape.sizes[q_.axis];
    for (int d = q_.axis + 1; d < value.shape.rank; ++d) inner_ *= value.shape.sizes[d];
  }

  [[nodiscard]] float number(std::int64_t row, std::int64_t column, std::int32_t integer) const {
    float scale = q_.scale;
    std::int32_t zero = q_.zero_point;
    if (q_.kind == Kind::PerGroup) scale = q_.scales[row * groups_ + column / q_.group];
    if (q_.kind == Kind::PerChannel) {
      const std::int64_t channel = (row * columns_ + column) / inner_ % channels_;
      scale = q_.scales[channel];
      if (q_.zero_points != nullptr) zero = q_.zero_points[channel];
    }
    return static_cast<float>(integer - zero) * scale;
  }

 private:
  const Quantization& q_;
  std::int64_t columns_, groups_ = 1, channels_ = 1, inner_ = 1;
};

class Legalizer {
 public:
  explicit Legalizer(Draft& draft) : draft_(draft) {}

  Error run() {
    std::vector<Node> old = std::move(draft_.graph.nodes);
    for (Node& node : old) {
      const Error error = legalize(std::move(node));
      if (error != Error::Ok) return error;
    }
    draft_.graph.nodes = std::move(nodes_);
    draft_.index();
    return Error::Ok;
  }

 private:
  [[nodiscard]] bool is_quantized_value(ValueId id) const { return id != kNoValue && is_quantized(draft_.value(id)); }

  [[nodiscard]] bool touches_integers(const Node& node) const {
    for (const auto* ids : {&node.inputs, &node.post_inputs, &node.outputs}) {
      for (const ValueId id : *ids) {
        if (is_quantized_value(id)) return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool is_native(const Node& node) const {
    const Value& in = draft_.value(node.inputs[0]);
    if (node.op == Op::Dequantize) return in.kind != ValueKind::Constant && in.dtype != ScalarType::Int;
    if (node.op == Op::Quantize) return !is_quantized(in) || (is_per_tensor(in) && is_per_tensor(out_of(node)));
    // After settle_moves, the elements are only moved.
    if (moves_elements(node) && node.op != Op::MaxPool && in.quantization.bits == 8) return true;
    const Operator* op = find_operator(node.op);
    return op != nullptr && op->quantized != nullptr && op->quantized(draft_.graph, node);
  }
  [[nodiscard]] const Value& out_of(const Node& node) const { return draft_.value(node.outputs[0]); }

  Error legalize(Node&& node) {
    if (!touches_integers(node) || is_native(node)) {
      nodes_.push_back(std::move(node));
      return Error::Ok;
    }
    if (node.op == Op::Dequantize) return constant_numbers(node);
    for (auto* ids : {&node.inputs, &node.post_inputs}) {
      for (ValueId& id : *ids) {
        if (is_quantized_value(id)) WB_TRY(numbers_of(id, &id));
      }
    }
    std::vector<Node> after;
    for (ValueId& id : node.outputs) {
      if (!is_quantized_value(id)) continue;
      const Value value = draft_.value(id);
      const ValueId numbers = draft_.add_value(value.shape, ScalarType::Float, value.dynamic);
      after.push_back(make_conversion(draft_, numbers, id));
      give_back_taps(id, numbers, static_cast<std::uint32_t>(node.post.size()));
      id = numbers;
    }
    nodes_.push_back(std::move(node));
    for (Node& conversion : after) nodes_.push_back(std::move(conversion));
    return Error::Ok;
  }

  // What the program of a node gives after some of its steps stands in its result again, or is it.
  void give_back_taps(ValueId integers, ValueId numbers, std::uint32_t steps) {
    for (Tap& tap : draft_.taps) {
      if (tap.value != integers || tap.post_count == Tap::kWhole) continue;
      tap.value = numbers;
      if (tap.post_count == steps) tap.post_count = Tap::kWhole;
    }
  }

  Error numbers_of(ValueId id, ValueId* numbers) {
    const auto [found, added] = numbers_.try_emplace(id, kNoValue);
    if (added) {
      const Value value = draft_.value(id);
      const ValueId to = draft_.add_value(value.shape, ScalarType::Float, value.dynamic);
      found->second = to;
      if (value.kind == ValueKind::Constant) {
        WB_TRY(become_constant(value, to));
      } else {
        nodes_.push_back(make_conversion(draft_, id, to));
      }
    }
    *numbers = found->second;
    return Error::Ok;
  }

  Error become_constant(const Value& from, ValueId to) {
    Value& value = draft_.value(to);
    value.kind = ValueKind::Constant;
    value.data = dequantized(draft_, from);
    if (value.data != nullptr || value.shape.numel() == 0) return Error::Ok;
    return draft_.report.fail(Error::MemoryAllocationFailed, "no memory for a constant of %lld elements",
                              static_cast<long long>(value.shape.numel()));
  }

  // A Dequantize node of a constant: its result is one.
  Error constant_numbers(const Node& node) {
    const Value from = draft_.value(node.inputs[0]);
    const ValueId out = node.outputs[0];
    if (draft_.value(out).kind == ValueKind::Temporary) return become_constant(from, out);
    ValueId numbers = kNoValue;
    WB_TRY(numbers_of(node.inputs[0], &numbers));
    Node copy = node;
    copy.op = Op::Copy;
    copy.inputs = {numbers};
    nodes_.push_back(std::move(copy));
    return Error::Ok;
  }

  Draft& draft_;
  std::vector<Node> nodes_;
  std::unordered_map<ValueId, ValueId> numbers_;  // of quantized values
};

}  // namespace

const float* dequantized(Draft& draft, const Value& constant) {
  const auto numel = static_cast<std::size_t>(constant.shape.numel());
  auto* to = static_cast<float*>(draft.own(numel * sizeof(float)));
  if (to == nullptr || numel == 0) return to;
  const std::int64_t columns = constant.shape.rank == 0 ? 1 : constant.shape.sizes[constant.shape.rank - 1];
  const std::int64_t rows = static_cast<std::int64_t>(numel) / columns;
  const Parameters parameters(constant, columns);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      to[r * columns + c] = parameters.number(r, c, integer_at(constant, r, c, columns));
    }
  }
  return to;
}

Error legalize_quantized(Draft& draft) { return Legalizer(draft).run(); }

}  // namespace wb::engine
