// Matrix products. A constant right-hand side is packed while preparing; another one is packed in each run, some
// columns at a time, so that what is packed is multiplied while it is near. Quantized values have methods of their own
// (quantized_matmul/).
#include "engine/operators/quantized_matmul/matmul.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "engine/operators/matmul/constants.h"
#include "engine/operators/matmul/product.h"
#include "engine/operators/matmul/sizes.h"

namespace wb::engine::WB_ISA::dense {
namespace {

constexpr std::int64_t kGroupBytes = 512 * 1024;  // of a right-hand side that is packed in a run

struct State {
  const float* a = nullptr;  // constants, as float
  const float* bias = nullptr;
  bool packed = false;
  PackedMatrix b;  // of the first matrix; others follow
  Sizes sizes;
  std::int64_t group = 1;  // panels of a variable right-hand side that are packed at a time
  std::int64_t thread_scratch = 0;
};

MatrixSource source_of(const Sizes& s, bool transposed, const TensorView& b) {
  MatrixSource source;
  source.data = b.data;
  source.dtype = b.dtype;
  source.inner = s.k;
  source.column = transposed ? s.k : 1;
  source.row = transposed ? 1 : s.n;
  return source;
}

Error matmul_prepare(PrepareContext& context) {
  if (quantized::is_quantized(context.operands)) return quantized::matmul_prepare(context);
  void* memory = context.setup.allocate(sizeof(State));
  if (memory == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a state");
  auto* state = new (memory) State;
  context.state = state;
  const Operands& operands = context.operands;
  WB_TRY(constant_floats(context, 0, &state->a));
  WB_TRY(constant_floats(context, 2, &state->bias));
  const TensorView& b = operands.inputs[1];
  if (!b.constant) return Error::Ok;
  const Sizes s = sizes_of(context.node, operands);
  state->packed = true;
  mark_packed(context, 1);
  state->b.k = s.k;
  state->b.n = s.n;
  return pack_constant(context.setup, source_of(s, context.node.attributes.transpose_b, b), leading(b.shape), s.k * s.n,
                       &state->b);
}

Error matmul_shape(ShapeContext& context) {
  if (quantized::is_quantized(context.operands)) return quantized::matmul_shape(context);
  auto* state = static_cast<State*>(context.state);
  const Sizes s = sizes_of(context.node, context.operands);
  state->sizes = s;
  state->b.k = s.k;
  state->b.n = s.n;
  state->thread_scratch = kRowScratch;
  if (!state->packed) {
    const std::int64_t panel = std::max<std::int64_t>(s.k, 1) * kPanel;
    const std::int64_t most = std::max<std::int64_t>(kGroupBytes / static_cast<std::int64_t>(sizeof(float)) / panel, 1);
    const std::int64_t panels = state->b.panels();
    // Work for every thread.
    const std::int64_t wanted = s.batch >= context.threads ? panels : (panels + context.threads - 1) / context.threads;
    state->group = std::max<std::int64_t>(std::min(most, wanted), 1);
    state->thread_scratch += std::min(state->group, std::max<std::int64_t>(panels, 1)) * panel;
  }
  context.scratch = static_cast<std::size_t>(context.threads * state->thread_scratch) * sizeof(float);
  return Error::Ok;
}

struct Run {
  const RunContext& context;
  const State& state;
  const Finish& finish;
  const float* a;

  [[nodiscard]] Product product(std::int64_t index) const {
    const Sizes& s = state.sizes;
    const Shape& out = context.operands.outputs[0].shape;
    Product p;
    p.m = s.m;
    p.b = state.b;
    p.a.data = a + (s.one_b ? 0 : batch_index(context.operands.inputs[0].shape, out, index) * s.m * s.k);
    p.a.lda = s.k;
    p.c = context.operands.outputs[0].as<float>() + index * s.m * s.n;
    p.ldc = s.n;
    p.finish = finish;
    if (finish.residual != nullptr) p.finish.residual += index * s.m * s.n;
    p.row0 = index * s.m;
    return p;
  }

  void packed(std::int64_t index, float* scratch) const {
    Product p = product(index);
    const std::int64_t which =
        state.sizes.one_b ? 0 : batch_index(context.operands.inputs[1].shape, context.operands.outputs[0].shape, index);
    p.b.data += which * p.b.k * p.b.columns();
    if (state.sizes.batch == 1) {
      product_all(p, context.pool, scratch);
    } else {
      product_part(p, 0, p.m, 0, p.b.panels(), scratch);
    }
  }

  // Columns of panels [first, first + group) of a right-hand side that is not constant.
  void variable(std::int64_t index, std::int64_t first, float* scratch) const {
    const Sizes& s = state.sizes;
    Product p = product(index);
    const TensorView& b = context.operands.inputs[1];
    MatrixSource source = source_of(s, context.node.attributes.transpose_b, b);
    const std::int64_t which = s.one_b ? 0 : batch_index(b.shape, context.operands.outputs[0].shape, index);
    const std::int64_t column = first * kPanel;
    source.data = b.as<float>() + which * s.k * s.n + column * source.column;
    p.b.n = std::min(s.n - column, state.group * kPanel);
    float* packed = scratch + kRowScratch;
    pack_matrix(p.b, source, 0, p.b.panels(), packed);
    p.b.data = packed;
    p.c += column;
    p.col0 = column;
    if (p.finish.bias != nullptr) p.finish.bias += column;
    if (p.finish.residual != nullptr) p.finish.residual += column;
    product_part(p, 0, p.m, 0, p.b.panels(), scratch);
  }
};

void matmul_run(const RunContext& context) {
  if (quantized::is_quantized(context.operands)) {
    quantized::matmul_run(context);
    return;
  }
  const State& state = *static_cast<const State*>(context.state);
  const Sizes& s = state.sizes;
  if (s.m == 0 || s.n == 0 || s.batch == 0) return;
  const Operands& operands = context.operands;
  const float* bias = state.bias;
  if (bias == nullptr && operands.input_count > 2 && operands.inputs[2].present) bias = operands.inputs[2].as<float>();
  Epilogue epilogue(context);
  const Finish finish = make_finish(epilogue, bias);
  const Run run{context, state, finish, state.a != nullptr ? state.a : operands.inputs[0].as<float>()};
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  if (state.packed && s.batch == 1) {
    run.packed(0, scratch);
    return;
  }
  const std::int64_t groups = state.packed ? 1 : (state.b.panels() + state.group - 1) / state.group;
  const auto task = [&](std::int64_t i, int thread) {
    float* own = scratch + thread * state.thread_scratch;
    if (state.packed) {
      run.packed(i, own);
    } else {
      run.variable(i / groups, i % groups * state.group, own);
    }
  };
  constexpr std::int64_t kWorthwhile = 1 << 20;  // multiplications: about 20 us
  const std::int64_t tasks = s.batch * groups;
  if (tasks * s.m * std::min(s.n, state.group * kPanel) * std::max<std::int64_t>(s.k, 1) >= 2 * kWorthwhile) {
    context.pool.parallel(tasks, [&](std::int64_t i, int thread) { task(i, thread); });
  } else {
    for (std::int64_t i = 0; i < tasks; ++i) task(i, 0);
  }
}

}  // namespace
}  // namespace wb::engine::WB_ISA::dense

WB_ENGINE_OPERATORS(matmul_matmul, {Op::MatMul, dense::matmul_prepare, dense::matmul_shape, dense::matmul_run,
                                    epilogue_fuses, quantized::matmul_quantized})
