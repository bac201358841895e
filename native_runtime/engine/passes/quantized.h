// What the passes share that bring quantized values into nodes and out of them.
#pragma once

#include "engine/passes/draft.h"

namespace wb::engine {

// Its result consists of elements of its inputs.
[[nodiscard]] bool moves_elements(const Node& node);
// Inputs from here on are no elements that are moved (indices).
[[nodiscard]] std::size_t moved_inputs(const Node& node);

[[nodiscard]] inline bool is_quantized(const Value& value) { return value.quantization.present(); }
[[nodiscard]] inline bool is_per_tensor(const Value& value) {
  return value.quantization.kind == Quantization::Kind::PerTensor && value.quantization.bits == 8 &&
         value.dtype != ScalarType::Int;
}
[[nodiscard]] inline bool same_elements(const Value& a, const Value& b) {
  return a.dtype == b.dtype && same_quantization(a.quantization, b.quantization);
}

// A node that makes `to` of `from`: Quantize or Dequantize, whichever `to` needs.
[[nodiscard]] Node make_conversion(const Draft& draft, ValueId from, ValueId to);

// Sources of `from` in front of those of `node`.
void take_sources(Node& node, const std::vector<std::int32_t>& sources);

// The numbers of a quantized constant, in memory of the draft; null when there is none.
[[nodiscard]] const float* dequantized(Draft& draft, const Value& constant);

}  // namespace wb::engine
