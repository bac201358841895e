#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {

Error infer_embedding(const InferContext& context) {
  const Shape& table = context.in(0);
  Shape out = context.in(1);
  if (table.rank != 2 || out.rank >= kMaxRank) {
    return context.report.fail(Error::InvalidProgram,
                               "expected a table [n, d] and ids of at most %d dimensions, found "
                               "%s and %s",
                               kMaxRank - 1, ShapeText(table).text, ShapeText(out).text);
  }
  out.sizes[out.rank++] = table.sizes[1];
  context.out() = out;
  return Error::Ok;
}

Error infer_gather(const InferContext& context) {
  Shape out = context.in(0);
  const int axis = context.node.attributes.axis;
  if (axis < 0 || axis >= out.rank || context.in(1).rank != 1) {
    return context.report.fail(Error::InvalidProgram, "axis %d of %s by indices %s", axis, ShapeText(out).text,
                               ShapeText(context.in(1)).text);
  }
  out.sizes[axis] = context.in(1).sizes[0];
  context.out() = out;
  return Error::Ok;
}

}  // namespace wb::engine
