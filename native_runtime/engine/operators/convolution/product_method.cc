// Convolution as a product of image rows and packed weights, one a group. A 1x1 kernel reads the image in place.
#include "engine/operators/convolution/image_rows.h"
#include "engine/operators/convolution/method.h"

namespace wb::engine::WB_ISA::dense {

MatrixSource weight_source(const Geometry& g, const WeightOrder& order, const TensorView& weight) {
  MatrixSource source;
  source.data = weight.data;
  source.dtype = weight.dtype;
  source.inner = g.cin_group();
  source.kernel_h = g.kh;
  source.kernel_w = g.kw;
  source.column = order.cout;
  source.row = order.cin;
  source.tap_h = order.h;
  source.tap_w = order.w;
  return source;
}

namespace {

// Packs the weights of all groups.
void pack_groups(const Geometry& g, const WeightOrder& order, const TensorView& weight, const PackedMatrix& matrix,
                 float* to) {
  MatrixSource source = weight_source(g, order, weight);
  const auto element = static_cast<std::int64_t>(element_size(weight.dtype));
  for (std::int64_t group = 0; group < g.groups; ++group) {
    source.data = weight.as<const std::byte>() + group * g.cout_group() * order.cout * element;
    pack_matrix(matrix, source, 0, matrix.panels(), to + group * matrix.k * matrix.columns());
  }
}

Error prepare(PrepareContext& context, Convolution& convolution) {
  const Geometry& g = convolution.g;
  const WeightOrder& order = context.node.attributes.weight_order;
  const TensorView& weight = context.operands.inputs[1];
  convolution.weights.k = g.depth();
  convolution.weights.n = g.cout_group();
  convolution.packed = weight.constant;
  if (!weight.constant) return Error::Ok;
  return pack_constant(context.setup, weight_source(g, order, weight), g.groups, g.cout_group() * order.cout,
                       &convolution.weights);
}

std::int64_t shape(Convolution& convolution, int threads) {
  std::int64_t elements = threads * kRowScratch;
  const PackedMatrix& weights = convolution.weights;
  if (!convolution.packed) elements += convolution.g.groups * weights.k * weights.columns();
  return elements;
}

void run(const RunContext& context, const Convolution& convolution, const Finish& finish) {
  const Geometry& g = convolution.g;
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  PackedMatrix weights = convolution.weights;
  if (!convolution.packed) {
    float* packed = scratch + context.pool.threads() * kRowScratch;
    pack_groups(g, context.node.attributes.weight_order, context.operands.inputs[1], weights, packed);
    weights.data = packed;
  }
  const float* image = input_of(context, convolution);
  const bool in_place = g.pointwise();
  for (std::int64_t group = 0; group < g.groups; ++group) {
    const ImageRows rows(g, image, group);
    const std::int64_t first = group * g.cout_group();
    Product product;
    product.m = g.pixels();
    product.b = weights;
    product.b.data += group * weights.k * weights.columns();
    if (in_place) {
      product.a.data = image + group * g.cin_group();
      product.a.lda = g.cin;
    } else {
      product.a = rows.source();
      product.period = rows.period();
      product.c_period = product.period * g.cout;
      product.row_period = product.period;
    }
    product.c = context.operands.outputs[0].as<float>() + first;
    product.ldc = g.cout;
    product.finish = finish;
    if (finish.bias != nullptr) product.finish.bias += first;
    if (finish.residual != nullptr) product.finish.residual += first;
    product.col0 = first;
    product_all(product, context.pool, scratch);
  }
}

}  // namespace

const Method kProductMethod = {"product", prepare, shape, run};

}  // namespace wb::engine::WB_ISA::dense
