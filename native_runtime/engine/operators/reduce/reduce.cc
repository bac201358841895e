#include <iterator>
#include <new>

#include "engine/names.h"
#include "engine/operators/common/epilogue.h"
#include "engine/operators/reduce/floats.h"
#include "engine/operators/reduce/quantized.h"
#include "kernels/common/types.h"

namespace wb::engine::WB_ISA {
namespace {

Error reduce_prepare(PrepareContext& context) {
  if (context.operands.inputs[0].quantization != nullptr) return quantized_reduce_prepare(context);
  const ScalarType in = context.operands.inputs[0].dtype;
  const ScalarType out = context.operands.outputs[0].dtype;
  const bool floats = in == ScalarType::Float && out == ScalarType::Float;
  if (!floats) {
    const ReduceFn fn = context.node.attributes.reduce;
    const bool truth = (fn == ReduceFn::Any || fn == ReduceFn::All) && in != ScalarType::Double;
    const bool whole = in != ScalarType::Float && in != ScalarType::Half && in != ScalarType::BFloat16 &&
                       in != ScalarType::Double && out != ScalarType::Half && out != ScalarType::BFloat16;
    if (!integers_reduce(fn) || !(truth || whole) || !kernels::WB_ISA::is_computable(in) ||
        !kernels::WB_ISA::is_computable(out)) {
      return context.setup.fail(Error::NotSupported, "this reduction of %s to %s", name_of(in), name_of(out));
    }
  }
  void* memory = context.setup.allocate(sizeof(ReduceLayout));
  if (memory == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a reduction");
  context.state = new (memory) ReduceLayout;
  return Error::Ok;
}

Error reduce_shape(ShapeContext& context) {
  if (context.operands.inputs[0].quantization != nullptr) return Error::Ok;
  *static_cast<ReduceLayout*>(context.state) =
      ReduceLayout(context.operands.inputs[0].shape, context.node.attributes.mask);
  return Error::Ok;
}

void reduce_run(const RunContext& context) {
  if (context.operands.inputs[0].quantization != nullptr) return quantized_reduce_run(context);
  const auto& layout = *static_cast<const ReduceLayout*>(context.state);
  const TensorView& out = context.operands.outputs[0];
  if (layout.outputs == 0) return;
  if (context.operands.inputs[0].dtype != ScalarType::Float || out.dtype != ScalarType::Float) {
    reduce_integers(context, layout);
    return;
  }
  reduce_floats(context, layout, out.as<float>());
  const Epilogue epilogue(context);
  if (!epilogue.empty()) epilogue.apply_all(out.as<float>());
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(reduce_reduce,
                    {Op::Reduce, reduce_prepare, reduce_shape, reduce_run, epilogue_fuses, quantized_reduce})
