#include "engine/operators/quantized_convolution/convolution.h"

#include <iterator>
#include <new>

#include "engine/operators/convolution/choose.h"

namespace wb::engine::WB_ISA::dense {
namespace {

Error convolution_prepare(PrepareContext& context) {
  if (quantized::is_quantized(context.operands)) return quantized::convolution_prepare(context);
  void* memory = context.setup.allocate(sizeof(Convolution));
  if (memory == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a state");
  auto* convolution = new (memory) Convolution;
  context.state = convolution;
  const Operands& operands = context.operands;
  convolution->g = geometry_of(context.node, operands);
  WB_TRY(constant_floats(context, 0, &convolution->input));
  WB_TRY(constant_floats(context, 2, &convolution->bias));
  if (operands.inputs[1].constant) mark_packed(context, 1);
  convolution->method = choose_method(context, *convolution);
  return convolution->method->prepare(context, *convolution);
}

Error convolution_shape(ShapeContext& context) {
  if (quantized::is_quantized(context.operands)) return quantized::convolution_shape(context);
  auto* convolution = static_cast<Convolution*>(context.state);
  convolution->g = geometry_of(context.node, context.operands);
  context.scratch = static_cast<std::size_t>(convolution->method->shape(*convolution, context.threads)) * sizeof(float);
  return Error::Ok;
}

void convolution_run(const RunContext& context) {
  if (quantized::is_quantized(context.operands)) {
    quantized::convolution_run(context);
    return;
  }
  const auto& convolution = *static_cast<const Convolution*>(context.state);
  if (convolution.g.pixels() == 0 || convolution.g.cout == 0) return;
  const Operands& operands = context.operands;
  const float* bias = convolution.bias;
  if (bias == nullptr && operands.input_count > 2 && operands.inputs[2].present) bias = operands.inputs[2].as<float>();
  Epilogue epilogue(context);
  convolution.method->run(context, convolution, make_finish(epilogue, bias));
}

}  // namespace
}  // namespace wb::engine::WB_ISA::dense

WB_ENGINE_OPERATORS(convolution_convolution, {Op::Convolution, dense::convolution_prepare, dense::convolution_shape,
                                              dense::convolution_run, epilogue_fuses, quantized::convolution_quantized})
