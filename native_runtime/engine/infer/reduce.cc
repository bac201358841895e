#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {

Error infer_reduce(const InferContext& context) {
  const Attributes& a = context.node.attributes;
  const Shape& x = context.in(0);
  std::uint32_t mask = a.mask;
  const bool arg = context.node.op == Op::ArgReduce;
  if (arg) mask = a.axis >= 0 && a.axis < x.rank ? 1U << a.axis : 0;
  if (arg && mask == 0) {
    return context.report.fail(Error::InvalidProgram, "axis %d of an input of rank %d", a.axis, x.rank);
  }
  if (mask >> x.rank != 0) {
    return context.report.fail(Error::InvalidProgram, "dimensions 0x%x of an input of rank %d", mask, x.rank);
  }
  const bool needs_one = arg || a.reduce == ReduceFn::Max || a.reduce == ReduceFn::Min;
  Shape out;
  for (int d = 0; d < x.rank; ++d) {
    if ((mask >> d & 1U) == 0) {
      out.sizes[out.rank++] = x.sizes[d];
      continue;
    }
    if (needs_one && x.sizes[d] == 0) {
      return context.report.fail(Error::InvalidProgram, "no element to choose from in dimension %d of %s", d,
                                 ShapeText(x).text);
    }
    if (a.keep) out.sizes[out.rank++] = 1;
  }
  context.out() = out;
  return Error::Ok;
}

}  // namespace wb::engine
