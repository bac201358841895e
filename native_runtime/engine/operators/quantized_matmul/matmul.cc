#include "engine/operators/quantized_matmul/matmul.h"

#include <new>

#include "engine/operators/matmul/constants.h"
#include "engine/operators/quantized_matmul/method.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

constexpr int kNibbleBits = 4;

// A constant right-hand side whose columns have one scale each, or one for each group of their elements.
bool good_weight(const Value& b, bool transposed) {
  const Quantization& q = b.quantization;
  const int rank = b.shape.rank;
  if (b.dtype != ScalarType::Char && !(b.dtype == ScalarType::Byte && q.bits == kNibbleBits)) return false;
  if (q.bits == kNibbleBits && (!transposed || rank != 2 || q.zero_point < 0 || q.zero_point > 15)) return false;
  switch (q.kind) {
    case Quantization::Kind::PerTensor: return q.bits == kNibbleBits || q.zero_point == 0;
    case Quantization::Kind::PerChannel:
      return q.axis == (transposed ? rank - 2 : rank - 1) && q.zero_points == nullptr &&
             (q.bits == kNibbleBits || q.zero_point == 0);
    case Quantization::Kind::PerGroup:
      return transposed && rank == 2 && q.group > 0 && q.group % kDepthUnit == 0 &&
             (q.bits == kNibbleBits || q.zero_point == 0);
    default: return false;
  }
}

}  // namespace

bool matmul_quantized(const Graph& graph, const Node& node) {
  const Value& a = graph.values[node.inputs[0]];
  const Value& b = graph.values[node.inputs[1]];
  const Value& out = graph.values[node.outputs[0]];
  if (!is_quantized(b) || !good_result(out) || !good_bias(graph, node)) return false;
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
  const bool integer_bias = has_bias && graph.values[node.inputs[2]].dtype == ScalarType::Int;
  if (b.kind != ValueKind::Constant) {
    return good_activation(a, true) && good_activation(b, false) && !(integer_bias && b.shape.rank > 2);
  }
  if (!good_weight(b, node.attributes.transpose_b)) return false;
  if (!is_quantized(a)) return a.dtype == ScalarType::Float && !integer_bias && !is_quantized(out);
  if (b.quantization.kind == Quantization::Kind::PerGroup && integer_bias) return false;
  return good_activation(a, true);
}

IntegerSource source_of(const dense::Sizes& sizes, bool transposed, const TensorView& b) {
  IntegerSource result;
  dense::MatrixSource& source = result.source;
  result.nibbles = b.quantization->bits == kNibbleBits;
  source.data = b.data;
  source.dtype = result.nibbles ? ScalarType::Char : b.dtype;
  source.inner = sizes.k;
  source.column = transposed ? sizes.k : 1;
  source.row = transposed ? 1 : sizes.n;
  if (result.nibbles) source.column = (sizes.k + 1) / 2;
  return result;
}

Error pack_matmul(PrepareContext& context, MatMul& state) {
  const TensorView& b = context.operands.inputs[1];
  Weights& weights = state.weights;
  const dense::Sizes& s = state.sizes;
  weights.matrix.k = s.k;
  weights.matrix.n = s.n;
  weights.count = dense::leading(b.shape);
  weights.matrix.nibbles = b.quantization->bits == kNibbleBits;
  weights.matrix.nibble_zero = weights.matrix.nibbles ? b.quantization->zero_point : 0;
  dense::mark_packed(context, 1);
  return pack_weights(context.setup, source_of(s, context.node.attributes.transpose_b, b), s.k * s.n, &weights);
}

Error matmul_prepare(PrepareContext& context) {
  void* memory = context.setup.allocate(sizeof(MatMul));
  if (memory == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a state");
  auto* state = new (memory) MatMul;
  context.state = state;
  const Operands& operands = context.operands;
  state->sizes = dense::sizes_of(context.node, operands);
  if (!is_quantized(operands.inputs[0])) {
    state->method = &kWeightOnlyMethod;
  } else {
    state->method = operands.inputs[1].constant ? &kConstantMethod : &kVariableMethod;
  }
  return state->method->prepare(context, *state);
}

Error matmul_shape(ShapeContext& context) {
  auto* state = static_cast<MatMul*>(context.state);
  state->sizes = dense::sizes_of(context.node, context.operands);
  context.scratch = static_cast<std::size_t>(state->method->shape(context, *state));
  return Error::Ok;
}

void matmul_run(const RunContext& context) {
  const auto& state = *static_cast<const MatMul*>(context.state);
  const dense::Sizes& s = state.sizes;
  if (s.m == 0 || s.n == 0 || s.batch == 0) return;
  state.method->run(context, state);
}

}  // namespace wb::engine::WB_ISA::quantized
