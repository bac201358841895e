// Convolution as a product of image rows and packed weights, one a group.
#include "engine/operators/quantized_convolution/image_rows.h"
#include "engine/operators/quantized_convolution/method.h"
#include "engine/operators/quantized_matmul/rows.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

Error prepare(PrepareContext& context, Convolution& convolution) {
  const Geometry& g = convolution.g;
  const Operands& operands = context.operands;
  const WeightOrder& order = context.node.attributes.weight_order;
  Weights& weights = convolution.weights;
  weights.matrix.k = g.depth();
  weights.matrix.n = g.cout_group();
  weights.count = g.groups;
  WB_TRY(
      pack_weights(context.setup, weight_source(g, order, operands.inputs[1]), g.cout_group() * order.cout, &weights));
  const WeightScales scales{*operands.inputs[1].quantization, 0, g.cout_group()};
  return prepare_columns(context.setup, LeftSide(operands.inputs[0]), scales, bias_of(operands), operands.outputs[0],
                         &weights);
}

std::int64_t shape(const Convolution& convolution, int threads) {
  return threads * product_scratch(convolution.g.depth());
}

void run(const RunContext& context, const Convolution& convolution, const Finish& finish) {
  const Geometry& g = convolution.g;
  const TensorView& x = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const LeftSide left(x);
  for (std::int64_t group = 0; group < g.groups; ++group) {
    const auto* image = x.as<const std::uint8_t>();
    const ImageRows rows(g, image, group, left.form);
    const MatrixRows pixels{image + group * g.cin_group(), g.cin_group(), g.cin, left.form.flip};
    Product product;
    convolution.weights.at(group, &product.b, &product.columns);
    product.m = g.pixels();
    product.a = g.pointwise() ? pixels.source() : rows.source();
    product.col0 = group * g.cout_group();
    product.element = static_cast<std::int64_t>(element_size(out.dtype));
    product.c = out.as<std::byte>() + product.col0 * product.element;
    product.ldc = g.cout;
    product.finish = finish;
    product_all(product, context.pool, context.scratch);
  }
}

}  // namespace

const ConvolutionMethod kProductMethod = {prepare, shape, run};

}  // namespace wb::engine::WB_ISA::quantized
