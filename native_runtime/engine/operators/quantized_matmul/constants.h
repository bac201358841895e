// What products of integers prepare: weights packed, what belongs to their columns, what becomes of numbers.
#pragma once

#include "engine/operators/common/rows_behind.h"
#include "engine/operators/quantized_matmul/left.h"
#include "engine/operators/quantized_matmul/product.h"

namespace wb::engine::WB_ISA::quantized {

[[nodiscard]] inline bool is_quantized(const TensorView& view) {
  return view.present && view.quantization != nullptr && view.quantization->present();
}
[[nodiscard]] inline bool is_quantized(const Value& value) { return value.quantization.present(); }

// Are the numbers of a node's first input, second input or output quantized?
[[nodiscard]] inline bool is_quantized(const Operands& operands) {
  return is_quantized(operands.inputs[0]) || is_quantized(operands.inputs[1]) || is_quantized(operands.outputs[0]);
}

// May activations be of this kind? `rows`: those quantized row by row too.
[[nodiscard]] inline bool good_activation(const Value& value, bool rows) {
  const Quantization& q = value.quantization;
  if (value.dtype == ScalarType::Byte) return q.kind == Quantization::Kind::PerTensor;
  if (value.dtype != ScalarType::Char) return false;
  return q.kind == Quantization::Kind::PerTensor || (rows && q.kind == Quantization::Kind::PerRow);
}

// A result is numbers, or integers of one scale.
[[nodiscard]] inline bool good_result(const Value& value) {
  return is_quantized(value) ? good_activation(value, false) : value.dtype == ScalarType::Float;
}

// A bias is missing, or a constant of float32 or int32.
[[nodiscard]] bool good_bias(const Graph& graph, const Node& node);

// The weights of a node, of one or several matrices of the same size one after the other.
struct Weights {
  PackedIntegers matrix;  // the first one
  std::int64_t count = 1;
  Columns columns;  // of the first one; those of the next one are column_step elements further

  [[nodiscard]] std::int64_t column_step() const { return matrix.columns(); }
  // The i-th of them.
  void at(std::int64_t i, PackedIntegers* matrix_of, Columns* columns_of) const;
};

// How the scales of B's columns follow from its quantization: column j of matrix i has channel first + j.
struct WeightScales {
  const Quantization& quantization;
  std::int64_t first = 0;  // channel of column 0
  std::int64_t next = 0;   // channels from one matrix to the next

  [[nodiscard]] float at(std::int64_t matrix, std::int64_t column) const {
    if (quantization.kind != Quantization::Kind::PerChannel) return quantization.scale;
    return quantization.scales[first + matrix * next + column];
  }
};

// What the sums of a left side quantized as `a` begin with.
struct LeftSide {
  LeftForm form;
  float scale = 1;
  bool rows = false;  // rows have scales and zero points of their own

  // Numbers.
  LeftSide() : form(ScalarType::Char, 0), rows(true) {}
  explicit LeftSide(const TensorView& view)
      : form(view.dtype, view.quantization->kind == Quantization::Kind::PerRow ? 0 : view.quantization->zero_point),
        scale(view.quantization->kind == Quantization::Kind::PerRow ? 1 : view.quantization->scale),
        rows(view.quantization->kind == Quantization::Kind::PerRow) {}
};

// Packs the constant weights: weights->matrix.k and n, and count are set; `next`: elements (bytes of 4 bits) from one
// matrix to the next.
Error pack_weights(Setup& setup, const IntegerSource& source, std::int64_t next, Weights* weights);

// Columns of weights that are packed (or whose sums are known only in a run: then starts are left at the bias), for
// such a result.
Error prepare_columns(Setup& setup, const LeftSide& left, const WeightScales& scales, const TensorView* bias,
                      const TensorView& result, Weights* weights);

// The same for weights quantized in groups.
Error prepare_groups(Setup& setup, const Quantization& quantization, const TensorView* bias, Weights* weights);

// The bias of a node, or null.
[[nodiscard]] inline const TensorView* bias_of(const Operands& operands) {
  return operands.input_count > 2 && operands.inputs[2].present ? &operands.inputs[2] : nullptr;
}

// What becomes of the numbers of a run. The epilogue must live as long.
[[nodiscard]] Finish make_finish(const TensorView& result, Epilogue& epilogue);

}  // namespace wb::engine::WB_ISA::quantized
