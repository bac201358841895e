#include <cstring>
#include <iterator>

#include "engine/operator.h"

namespace wb::engine::WB_ISA {
namespace {

Error copy_prepare(PrepareContext& /*context*/) { return Error::Ok; }
Error copy_shape(ShapeContext& /*context*/) { return Error::Ok; }

void copy_run(const RunContext& context) {
  const TensorView& from = context.operands.inputs[0];
  const TensorView& to = context.operands.outputs[0];
  const std::size_t bytes = static_cast<std::size_t>(to.shape.numel()) * element_size(to.dtype);
  if (bytes != 0 && to.data != from.data) std::memcpy(to.data, from.data, bytes);
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(copy_copy, {Op::Copy, copy_prepare, copy_shape, copy_run, nullptr})
