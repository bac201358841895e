// The ways to compute a product with quantized values.
#pragma once

#include "engine/operators/matmul/sizes.h"
#include "engine/operators/quantized_matmul/constants.h"
#include "engine/operators/quantized_matmul/rows.h"

namespace wb::engine::WB_ISA::quantized {

struct MatMul;

struct MatMulMethod {
  Error (*prepare)(PrepareContext& context, MatMul& state);
  // Bytes of scratch memory.
  std::int64_t (*shape)(const ShapeContext& context, MatMul& state);
  void (*run)(const RunContext& context, const MatMul& state);
};

// The state of a node.
struct MatMul {
  const MatMulMethod* method = nullptr;
  dense::Sizes sizes;
  Weights weights;
  // Of a right-hand side that is no constant: panels that are packed at a time, bytes of scratch memory of a thread.
  std::int64_t group = 1, thread_scratch = 0;
};

// Integers times constant integers; times others, which are packed in each run; numbers times constant integers.
extern const MatMulMethod kConstantMethod, kVariableMethod, kWeightOnlyMethod;

// The integers of the node's right-hand side, the first matrix of it.
[[nodiscard]] IntegerSource source_of(const dense::Sizes& sizes, bool transposed, const TensorView& b);

// The weights of the node packed; the scales are not prepared.
Error pack_matmul(PrepareContext& context, MatMul& state);

}  // namespace wb::engine::WB_ISA::quantized
