// Transposed convolutions, one product a phase.
#include <algorithm>
#include <iterator>
#include <new>

#include "engine/operators/convolution/image_rows.h"
#include "engine/operators/convolution/method.h"
#include "engine/operators/convolution/phases.h"
#include "engine/operators/quantized_convolution/convolution.h"

namespace wb::engine::WB_ISA::dense {
namespace {

PackedMatrix matrix_of(const Phases& phases, std::int64_t phase) {
  PackedMatrix matrix;
  matrix.k = phases.y(phase).taps * phases.x(phase).taps * phases.g.cin_group();
  matrix.n = phases.g.cout_group();
  return matrix;
}

// Of the weights of all phases and groups, [phase][group].
std::int64_t packed_elements(const Geometry& g) {
  return g.depth() * g.groups * PackedMatrix{nullptr, 1, g.cout_group()}.columns();
}

void pack_phases(const Geometry& g, const WeightOrder& order, const TensorView& weight, float* to) {
  const Phases phases(g);
  const auto element = static_cast<std::int64_t>(element_size(weight.dtype));
  for (std::int64_t phase = 0; phase < phases.count(); ++phase) {
    const PhaseAxis y = phases.y(phase);
    const PhaseAxis x = phases.x(phase);
    const PackedMatrix matrix = matrix_of(phases, phase);
    MatrixSource source = weight_source(g, order, weight);
    source.kernel_h = y.taps;
    source.kernel_w = x.taps;
    source.tap_h = y.step * order.h;
    source.tap_w = x.step * order.w;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const std::int64_t at = group * g.cout_group() * order.cout + y.tap * order.h + x.tap * order.w;
      source.data = weight.as<const std::byte>() + at * element;
      pack_matrix(matrix, source, 0, matrix.panels(), to);
      to += matrix.k * matrix.columns();
    }
  }
}

Error pack_constant_phases(PrepareContext& context, Convolution& state) {
  const Geometry& g = state.g;
  const WeightOrder& order = context.node.attributes.weight_order;
  const TensorView& weight = context.operands.inputs[1];
  const std::uint64_t format = FormatKey(kPhaseFormat)
                                   .add(weight_source(g, order, weight))
                                   .add(g.groups)
                                   .add(g.cout)
                                   .add(g.sh)
                                   .add(g.sw)
                                   .add(g.dh)
                                   .add(g.dw)
                                   .value();
  const std::size_t bytes = static_cast<std::size_t>(packed_elements(g)) * sizeof(float);
  bool ready = false;
  auto* packed = static_cast<float*>(context.setup.allocate_packed(weight.data, format, bytes, &ready));
  if (packed == nullptr) {
    return context.setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of packed weights", bytes);
  }
  state.taps = packed;
  if (!ready) pack_phases(g, order, weight, packed);
  return Error::Ok;
}

Error transposed_prepare(PrepareContext& context) {
  if (quantized::is_quantized(context.operands)) return quantized::convolution_prepare(context);
  void* memory = context.setup.allocate(sizeof(Convolution));
  if (memory == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a state");
  auto* state = new (memory) Convolution;
  context.state = state;
  const Operands& operands = context.operands;
  state->g = geometry_of(context.node, operands);
  WB_TRY(constant_floats(context, 0, &state->input));
  WB_TRY(constant_floats(context, 2, &state->bias));
  state->packed = operands.inputs[1].constant;
  if (state->packed) mark_packed(context, 1);
  return state->packed ? pack_constant_phases(context, *state) : Error::Ok;
}

Error transposed_shape(ShapeContext& context) {
  if (quantized::is_quantized(context.operands)) return quantized::convolution_shape(context);
  auto* state = static_cast<Convolution*>(context.state);
  state->g = geometry_of(context.node, context.operands);
  std::int64_t elements = context.threads * kRowScratch;
  if (!state->packed) elements += packed_elements(state->g);
  context.scratch = static_cast<std::size_t>(elements) * sizeof(float);
  return Error::Ok;
}

struct Run {
  const RunContext& context;
  const Geometry& g;
  const Finish& finish;
  const float* image;
  float* out;

  // One phase of all groups and images; returns the weights of the next one.
  const float* phase(const PhaseAxis& y, const PhaseAxis& x, PackedMatrix weights) const {
    const Geometry plain = plain_convolution(g, y, x);
    for (std::int64_t group = 0; group < g.groups; ++group) {
      for (std::int64_t n = 0; n < g.batch && plain.pixels() != 0; ++n) {
        const ImageRows rows(plain, image + n * g.h * g.w * g.cin, group);
        const std::int64_t first = group * g.cout_group();
        Product product;
        product.m = plain.pixels();
        product.b = weights;
        product.a = rows.source();
        product.row0 = (n * g.oh + y.first) * g.ow + x.first;
        product.row_step = g.sw;
        product.row_period = g.sh * g.ow;
        product.col0 = first;
        product.period = plain.ow;
        product.ldc = g.sw * g.cout;
        product.c_period = g.sh * g.ow * g.cout;
        const std::int64_t at = product.row0 * g.cout + first;
        product.c = out + at;
        product.finish = finish;
        if (finish.bias != nullptr) product.finish.bias += first;
        if (finish.residual != nullptr) product.finish.residual += at;
        product_all(product, context.pool, reinterpret_cast<float*>(context.scratch));
      }
      weights.data += weights.k * weights.columns();
    }
    return weights.data;
  }

  // Pixels that no tap reaches.
  void rest() const {
    Phases(g).for_unreached([&](std::int64_t pixel) { empty(pixel); });
  }
  void empty(std::int64_t pixel) const {
    float* to = out + pixel * g.cout;
    if (finish.bias != nullptr) {
      std::copy_n(finish.bias, g.cout, to);
    } else {
      std::fill_n(to, g.cout, 0.0F);
    }
    finish_rows(finish, true, pixel, 1, g.cout, to);
  }
};

void transposed_run(const RunContext& context) {
  if (quantized::is_quantized(context.operands)) {
    quantized::convolution_run(context);
    return;
  }
  const auto& state = *static_cast<const Convolution*>(context.state);
  const Geometry& g = state.g;
  if (g.pixels() == 0 || g.cout == 0) return;
  const Operands& operands = context.operands;
  const float* bias = state.bias;
  if (bias == nullptr && operands.input_count > 2 && operands.inputs[2].present) bias = operands.inputs[2].as<float>();
  const float* packed = state.taps;
  if (!state.packed) {
    float* to = reinterpret_cast<float*>(context.scratch) + context.pool.threads() * kRowScratch;
    pack_phases(g, context.node.attributes.weight_order, operands.inputs[1], to);
    packed = to;
  }
  Epilogue epilogue(context);
  const Finish finish = make_finish(epilogue, bias);
  const Run run{context, g, finish, input_of(context, state), operands.outputs[0].as<float>()};
  const Phases phases(g);
  for (std::int64_t phase = 0; phase < phases.count(); ++phase) {
    PackedMatrix weights = matrix_of(phases, phase);
    weights.data = packed;
    packed = run.phase(phases.y(phase), phases.x(phase), weights);
  }
  run.rest();
}

}  // namespace
}  // namespace wb::engine::WB_ISA::dense

WB_ENGINE_OPERATORS(convolution_transposed,
                    {Op::TransposedConvolution, dense::transposed_prepare, dense::transposed_shape,
                     dense::transposed_run, epilogue_fuses, quantized::convolution_quantized})
