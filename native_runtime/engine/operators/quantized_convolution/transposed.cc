// Transposed convolutions of integers, one product a phase (convolution/phases.h).
#include <new>

#include "engine/operators/convolution/phases.h"
#include "engine/operators/quantized_convolution/image_rows.h"
#include "engine/operators/quantized_convolution/method.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

using dense::PhaseAxis;
using dense::Phases;

// The weights of a phase: k and n, and where they come from.
IntegerSource phase_source(const Phases& phases, std::int64_t phase, const WeightOrder& order,
                           const TensorView& weight) {
  const PhaseAxis y = phases.y(phase);
  const PhaseAxis x = phases.x(phase);
  IntegerSource result = weight_source(phases.g, order, weight);
  dense::MatrixSource& source = result.source;
  source.kernel_h = y.taps;
  source.kernel_w = x.taps;
  source.tap_h = y.step * order.h;
  source.tap_w = x.step * order.w;
  source.data = static_cast<const std::byte*>(source.data) + y.tap * order.h + x.tap * order.w;
  return result;
}

// Phases, then what has no taps.
Error prepare(PrepareContext& context, Convolution& convolution) {
  const Geometry& g = convolution.g;
  const Operands& operands = context.operands;
  const WeightOrder& order = context.node.attributes.weight_order;
  const Phases phases(g);
  const LeftSide left(operands.inputs[0]);
  const WeightScales scales{*operands.inputs[1].quantization, 0, g.cout_group()};
  const std::size_t bytes = static_cast<std::size_t>(phases.count() + 1) * sizeof(Weights);
  auto* weights = static_cast<Weights*>(context.setup.allocate(bytes));
  if (weights == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a state");
  convolution.phases = weights;
  for (std::int64_t phase = 0; phase <= phases.count(); ++phase) {
    auto* one = new (weights + phase) Weights;
    const bool taps = phase < phases.count();
    one->matrix.n = g.cout_group();
    one->matrix.k = taps ? phases.y(phase).taps * phases.x(phase).taps * g.cin_group() : 0;
    one->count = g.groups;
    const IntegerSource source =
        taps ? phase_source(phases, phase, order, operands.inputs[1]) : weight_source(g, order, operands.inputs[1]);
    WB_TRY(pack_weights(context.setup, source, g.cout_group() * order.cout, one));
    WB_TRY(prepare_columns(context.setup, left, scales, bias_of(operands), operands.outputs[0], one));
  }
  return Error::Ok;
}

std::int64_t shape(const Convolution& convolution, int threads) {
  return threads * product_scratch(convolution.g.depth());
}

struct Run {
  const RunContext& context;
  const Convolution& convolution;
  const Finish& finish;
  LeftForm form;

  // Of the rows of one group, without rows.
  [[nodiscard]] Product product(const Weights& weights, std::int64_t group) const {
    const Geometry& g = convolution.g;
    const TensorView& out = context.operands.outputs[0];
    Product result;
    weights.at(group, &result.b, &result.columns);
    result.col0 = group * g.cout_group();
    result.element = static_cast<std::int64_t>(element_size(out.dtype));
    result.c = out.as<std::byte>() + result.col0 * result.element;
    result.ldc = g.cout;
    result.finish = finish;
    return result;
  }

  void phase(const PhaseAxis& y, const PhaseAxis& x, const Weights& weights) const {
    const Geometry& g = convolution.g;
    const Geometry plain = dense::plain_convolution(g, y, x);
    if (plain.pixels() == 0) return;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      for (std::int64_t n = 0; n < g.batch; ++n) {
        const auto* image = context.operands.inputs[0].as<const std::uint8_t>() + n * g.h * g.w * g.cin;
        const ImageRows rows(plain, image, group, form);
        Product one = product(weights, group);
        one.m = plain.pixels();
        one.a = rows.source();
        one.row0 = (n * g.oh + y.first) * g.ow + x.first;
        one.period = plain.ow;
        one.row_step = g.sw;
        one.row_period = g.sh * g.ow;
        product_all(one, context.pool, context.scratch);
      }
    }
  }

  void unreached(std::int64_t pixel, const Weights& weights) const {
    for (std::int64_t group = 0; group < convolution.g.groups; ++group) {
      Product one = product(weights, group);
      one.m = 1;
      one.a.fill = [](const void*, std::int64_t, int, DotLeft*, std::int64_t) {};
      one.row0 = pixel;
      product_part(one, 0, 1, 0, one.b.panels(), context.scratch);
    }
  }
};

void run(const RunContext& context, const Convolution& convolution, const Finish& finish) {
  const Run run{context, convolution, finish, LeftSide(context.operands.inputs[0]).form};
  const Phases phases(convolution.g);
  for (std::int64_t phase = 0; phase < phases.count(); ++phase) {
    run.phase(phases.y(phase), phases.x(phase), convolution.phases[phase]);
  }
  phases.for_unreached([&](std::int64_t pixel) { run.unreached(pixel, convolution.phases[phases.count()]); });
}

}  // namespace

const ConvolutionMethod kTransposedMethod = {prepare, shape, run};

}  // namespace wb::engine::WB_ISA::quantized
