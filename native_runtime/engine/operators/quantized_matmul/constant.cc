// Integers times constant integers, packed while preparing.
#include "engine/operators/matmul/constants.h"
#include "engine/operators/quantized_matmul/method.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

Error prepare(PrepareContext& context, MatMul& state) {
  WB_TRY(pack_matmul(context, state));
  const Operands& operands = context.operands;
  const Quantization& q = *operands.inputs[1].quantization;
  const TensorView* bias = bias_of(operands);
  if (bias != nullptr) dense::mark_packed(context, 2);
  if (q.kind == Quantization::Kind::PerGroup) return prepare_groups(context.setup, q, bias, &state.weights);
  return prepare_columns(context.setup, LeftSide(operands.inputs[0]), {q}, bias, operands.outputs[0], &state.weights);
}

std::int64_t shape(const ShapeContext& context, MatMul& state) {
  return context.threads * product_scratch(state.sizes.k);
}

void run(const RunContext& context, const MatMul& state) {
  const Operands& operands = context.operands;
  const dense::Sizes& s = state.sizes;
  const TensorView& a = operands.inputs[0];
  const TensorView& out = operands.outputs[0];
  const LeftSide left(a);
  Epilogue epilogue(context);
  const Finish finish = make_finish(out, epilogue);
  const RowQuantization* rows = left.rows && s.k != 0 ? rows_behind(a) : nullptr;  // rows of nothing have none
  const std::int64_t own = product_scratch(s.k);
  const auto multiply = [&](std::int64_t index, bool all, int thread) {
    const std::int64_t of_a = s.one_b ? 0 : dense::batch_index(a.shape, out.shape, index);
    const std::int64_t of_b = s.one_b ? 0 : dense::batch_index(operands.inputs[1].shape, out.shape, index);
    const MatrixRows matrix{a.as<const std::uint8_t>() + of_a * s.m * s.k, s.k, s.k, left.form.flip};
    Product product;
    state.weights.at(of_b, &product.b, &product.columns);
    product.m = s.m;
    product.a = matrix.source();
    product.rows = rows == nullptr ? nullptr : rows + of_a * s.m;
    product.row_scale = left.scale;
    product.a_zero = left.form.zero;
    product.c = out.as<std::byte>();
    product.element = static_cast<std::int64_t>(element_size(out.dtype));
    product.ldc = s.n;
    product.row0 = index * s.m;
    product.finish = finish;
    if (all) {
      product_all(product, context.pool, context.scratch);
    } else {
      product_part(product, 0, s.m, 0, product.b.panels(), context.scratch + thread * own);
    }
  };
  if (s.batch < context.pool.threads()) {
    for (std::int64_t i = 0; i < s.batch; ++i) multiply(i, true, 0);
  } else {
    context.pool.parallel(s.batch, [&](std::int64_t i, int thread) { multiply(i, false, thread); });
  }
}

}  // namespace

const MatMulMethod kConstantMethod = {prepare, shape, run};

}  // namespace wb::engine::WB_ISA::quantized
