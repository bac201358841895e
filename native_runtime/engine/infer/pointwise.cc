#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {

Error infer_pointwise(const InferContext& context) {
  Shape shape = context.in(0);
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    if (broadcast(shape, context.in(i), &shape)) continue;
    return context.report.fail(Error::InvalidProgram, "input %zu: sizes %s can't be broadcast with %s", i,
                               ShapeText(context.in(i)).text, ShapeText(shape).text);
  }
  context.out() = shape;
  return Error::Ok;
}

Error infer_same(const InferContext& context) {
  context.out() = context.in(0);
  if (context.node.op != Op::Softmax) return Error::Ok;
  const int axis = context.node.attributes.axis;
  if (axis >= 0 && axis < context.in(0).rank) return Error::Ok;
  return context.report.fail(Error::InvalidProgram, "axis %d of an input of rank %d", axis, context.in(0).rank);
}

}  // namespace wb::engine
