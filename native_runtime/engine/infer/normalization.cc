#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {

Error infer_norm(const InferContext& context) {
  const Shape& x = context.in(0);
  const int axis = context.node.attributes.axis;
  if (axis < 1 || axis > x.rank) {
    return context.report.fail(Error::InvalidProgram, "the last %d dimensions of %s", axis, ShapeText(x).text);
  }
  std::int64_t count = 1;
  for (int d = x.rank - axis; d < x.rank; ++d) count *= x.sizes[d];
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    if (!context.has(i) || context.in(i).numel() == count) continue;
    return context.report.fail(Error::InvalidProgram, "input %zu: expected %lld elements, found %s", i,
                               static_cast<long long>(count), ShapeText(context.in(i)).text);
  }
  context.out() = x;
  return Error::Ok;
}

Error infer_group_norm(const InferContext& context) {
  const Shape& x = context.in(0);
  const std::int64_t groups = context.node.attributes.groups;
  if (x.rank < 2 || x.sizes[x.rank - 1] % groups != 0) {
    return context.report.fail(Error::InvalidProgram, "%lld groups of the channels of %s",
                               static_cast<long long>(groups), ShapeText(x).text);
  }
  const std::int64_t channels = x.sizes[x.rank - 1];
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    if (!context.has(i) || context.in(i).numel() == channels) continue;
    return context.report.fail(Error::InvalidProgram, "input %zu: expected %lld elements, found %s", i,
                               static_cast<long long>(channels), ShapeText(context.in(i)).text);
  }
  context.out() = x;
  return Error::Ok;
}

}  // namespace wb::engine
