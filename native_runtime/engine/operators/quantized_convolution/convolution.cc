#include "engine/operators/quantized_convolution/convolution.h"

#include <new>

#include "engine/operators/matmul/constants.h"
#include "engine/operators/quantized_convolution/method.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

// One scale for all, or one for each output channel.
bool good_weight(const Node& node, const Value& weight, std::int64_t cout) {
  const Quantization& q = weight.quantization;
  if (weight.kind != ValueKind::Constant || weight.dtype != ScalarType::Char || q.bits != 8 || q.zero_point != 0) {
    return false;
  }
  if (q.kind == Quantization::Kind::PerTensor) return true;
  if (q.kind != Quantization::Kind::PerChannel || q.zero_points != nullptr) return false;
  if (q.axis < 0 || q.axis >= weight.shape.rank || weight.shape.sizes[q.axis] != cout) return false;
  std::int64_t step = 1;  // between output channels
  for (int d = weight.shape.rank - 1; d > q.axis; --d) step *= weight.shape.sizes[d];
  return cout == 1 || step == node.attributes.weight_order.cout;
}

const ConvolutionMethod* choose_method(const Node& node, const Geometry& g) {
  if (node.op == Op::TransposedConvolution) return &kTransposedMethod;
  return g.cin_group() == 1 && g.cout_group() == 1 && g.groups > 1 ? &kDepthwiseMethod : &kProductMethod;
}

}  // namespace

bool convolution_quantized(const Graph& graph, const Node& node) {
  const Value& out = graph.values[node.outputs[0]];
  return good_activation(graph.values[node.inputs[0]], false) &&
         good_weight(node, graph.values[node.inputs[1]], out.shape.sizes[out.shape.rank - 1]) && good_result(out) &&
         good_bias(graph, node);
}

IntegerSource weight_source(const Geometry& g, const WeightOrder& order, const TensorView& weight) {
  IntegerSource result;
  dense::MatrixSource& source = result.source;
  source.data = weight.data;
  source.dtype = weight.dtype;
  source.inner = g.cin_group();
  source.kernel_h = g.kh;
  source.kernel_w = g.kw;
  source.column = order.cout;
  source.row = order.cin;
  source.tap_h = order.h;
  source.tap_w = order.w;
  return result;
}

Error convolution_prepare(PrepareContext& context) {
  void* memory = context.setup.allocate(sizeof(Convolution));
  if (memory == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a state");
  auto* convolution = new (memory) Convolution;
  context.state = convolution;
  convolution->g = dense::geometry_of(context.node, context.operands);
  convolution->method = choose_method(context.node, convolution->g);
  dense::mark_packed(context, 1);
  if (bias_of(context.operands) != nullptr) dense::mark_packed(context, 2);
  return convolution->method->prepare(context, *convolution);
}

Error convolution_shape(ShapeContext& context) {
  auto* convolution = static_cast<Convolution*>(context.state);
  convolution->g = dense::geometry_of(context.node, context.operands);
  context.scratch = static_cast<std::size_t>(convolution->method->shape(*convolution, context.threads));
  return Error::Ok;
}

void convolution_run(const RunContext& context) {
  const auto& convolution = *static_cast<const Convolution*>(context.state);
  if (convolution.g.pixels() == 0 || convolution.g.cout == 0) return;
  Epilogue epilogue(context);
  convolution.method->run(context, convolution, make_finish(context.operands.outputs[0], epilogue));
}

}  // namespace wb::engine::WB_ISA::quantized
