// Integers times integers that are no constants: these are packed in each run, some columns at a time, so that what is
// packed is multiplied while it is near.
#include <algorithm>

#include "engine/operators/matmul/constants.h"
#include "engine/operators/quantized_matmul/method.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

constexpr std::int64_t kGroupBytes = 128 * 1024;  // that are packed at a time
constexpr std::int64_t kLine = 64;

std::int64_t lines(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Of `panels` panels: the packed matrix, sums of its columns and what sums begin with.
std::int64_t packed_bytes(const PackedIntegers& b, std::int64_t panels) {
  const std::int64_t columns = panels * kPanelColumns;
  return lines(columns * b.depth_bytes()) + 2 * lines(columns * static_cast<std::int64_t>(sizeof(std::int32_t)));
}

Error prepare(PrepareContext& context, MatMul& state) {
  const Operands& operands = context.operands;
  state.weights.matrix.k = state.sizes.k;
  state.weights.matrix.n = state.sizes.n;
  const TensorView* bias = bias_of(operands);
  if (bias != nullptr) dense::mark_packed(context, 2);
  return prepare_columns(context.setup, LeftSide(operands.inputs[0]), {*operands.inputs[1].quantization}, bias,
                         operands.outputs[0], &state.weights);
}

std::int64_t shape(const ShapeContext& context, MatMul& state) {
  const dense::Sizes& s = state.sizes;
  PackedIntegers& b = state.weights.matrix;
  b.k = s.k;
  b.n = s.n;
  const std::int64_t most = std::max<std::int64_t>(kGroupBytes / std::max<std::int64_t>(packed_bytes(b, 1), 1), 1);
  const std::int64_t wanted =
      s.batch >= context.threads ? b.panels() : (b.panels() + context.threads - 1) / context.threads;
  state.group = std::max<std::int64_t>(std::min(most, wanted), 1);
  state.thread_scratch = product_scratch(s.k) + packed_bytes(b, state.group);
  return context.threads * state.thread_scratch;
}

struct Run {
  const RunContext& context;
  const MatMul& state;
  const Finish& finish;

  // Columns of panels [first, first + group) of the product `index`.
  void part(std::int64_t index, std::int64_t first, std::byte* scratch) const {
    const Operands& operands = context.operands;
    const dense::Sizes& s = state.sizes;
    const TensorView& a = operands.inputs[0];
    const TensorView& b = operands.inputs[1];
    const TensorView& out = operands.outputs[0];
    const std::int64_t of_a = s.one_b ? 0 : dense::batch_index(a.shape, out.shape, index);
    const std::int64_t of_b = s.one_b ? 0 : dense::batch_index(b.shape, out.shape, index);
    const std::int64_t column = first * kPanelColumns;
    const LeftSide left(a);
    Product product;
    product.b = state.weights.matrix;
    product.b.n = std::min(s.n - column, state.group * kPanelColumns);
    product.columns = state.weights.columns;
    product.columns.scale += column;
    product.columns.bias += column;
    if (product.columns.direct_scale != nullptr) {
      product.columns.direct_scale += column;
      product.columns.direct_bias += column;
    }
    pack(left, of_b, column, scratch + product_scratch(s.k), &product);
    const MatrixRows matrix{a.as<const std::uint8_t>() + of_a * s.m * s.k, s.k, s.k, left.form.flip};
    product.m = s.m;
    product.a = matrix.source();
    product.rows = left.rows && s.k != 0 ? rows_behind(a) + of_a * s.m : nullptr;
    product.a_zero = left.form.zero;
    product.b_zero = b.quantization->zero_point - (b.dtype == ScalarType::Byte ? 128 : 0);
    product.element = static_cast<std::int64_t>(element_size(out.dtype));
    product.c = out.as<std::byte>() + column * product.element;
    product.ldc = s.n;
    product.row0 = index * s.m;
    product.col0 = column;
    product.finish = finish;
    product_part(product, 0, s.m, 0, product.b.panels(), scratch);
  }

  void pack(const LeftSide& left, std::int64_t of_b, std::int64_t column, std::byte* to, Product* product) const {
    const dense::Sizes& s = state.sizes;
    PackedIntegers& packed = product->b;
    IntegerSource source = source_of(s, context.node.attributes.transpose_b, context.operands.inputs[1]);
    source.source.data =
        static_cast<const std::byte*>(source.source.data) + of_b * s.k * s.n + column * source.source.column;
    auto* const data = reinterpret_cast<std::int8_t*>(to);
    auto* const sums = reinterpret_cast<std::int32_t*>(to + lines(packed.bytes()));
    std::int32_t* const start = sums + lines(packed.columns() * 4) / 4;
    pack_integers(packed, source, 0, packed.panels(), data, sums);
    packed.data = data;
    for (std::int64_t j = 0; j < packed.columns(); ++j) {
      start[j] = state.weights.columns.start[column + j];
      if (!left.rows) start[j] -= left.form.zero * sums[j];
    }
    product->columns.sums = sums;
    product->columns.start = start;
  }
};

void run(const RunContext& context, const MatMul& state) {
  const dense::Sizes& s = state.sizes;
  Epilogue epilogue(context);
  const Finish finish = make_finish(context.operands.outputs[0], epilogue);
  const Run run{context, state, finish};
  const std::int64_t groups = (state.weights.matrix.panels() + state.group - 1) / state.group;
  const std::int64_t tasks = s.batch * groups;
  const auto task = [&](std::int64_t i, int thread) {
    run.part(i / groups, i % groups * state.group, context.scratch + thread * state.thread_scratch);
  };
  constexpr std::int64_t kWorthwhile = 1 << 21;  // multiplications: about 20 us, with what is packed
  if (s.batch * s.m * s.n * std::max<std::int64_t>(s.k, 1) >= 2 * kWorthwhile) {
    context.pool.parallel(tasks, [&](std::int64_t i, int thread) { task(i, thread); });
  } else {
    for (std::int64_t i = 0; i < tasks; ++i) task(i, 0);
  }
}

}  // namespace

const MatMulMethod kVariableMethod = {prepare, shape, run};

}  // namespace wb::engine::WB_ISA::quantized
