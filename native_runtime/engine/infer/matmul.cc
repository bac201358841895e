#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {

Error infer_matmul(const InferContext& context) {
  const Shape& a = context.in(0);
  const Shape& b = context.in(1);
  if (a.rank < 2 || b.rank < 2) {
    return context.report.fail(Error::InvalidProgram, "expected at least two dimensions, found %s and %s",
                               ShapeText(a).text, ShapeText(b).text);
  }
  const bool transpose = context.node.attributes.transpose_b;
  const std::int64_t k = b.sizes[b.rank - (transpose ? 1 : 2)];
  const std::int64_t n = b.sizes[b.rank - (transpose ? 2 : 1)];
  if (a.sizes[a.rank - 1] != k) {
    return context.report.fail(Error::InvalidProgram, "the inner sizes of %s and %s%s differ", ShapeText(a).text,
                               ShapeText(b).text, transpose ? " (transposed)" : "");
  }
  Shape left = a;
  Shape right = b;
  left.rank = static_cast<std::uint8_t>(a.rank - 2);
  right.rank = static_cast<std::uint8_t>(b.rank - 2);
  Shape out;
  if (!broadcast(left, right, &out)) {
    return context.report.fail(Error::InvalidProgram, "the leading sizes of %s and %s can't be broadcast",
                               ShapeText(a).text, ShapeText(b).text);
  }
  out.sizes[out.rank++] = a.sizes[a.rank - 2];
  out.sizes[out.rank++] = n;
  if (context.has(2) && !(context.in(2).rank == 1 && context.in(2).sizes[0] == n)) {
    return context.report.fail(Error::InvalidProgram, "bias: expected [%lld], found %s", static_cast<long long>(n),
                               ShapeText(context.in(2)).text);
  }
  context.out() = out;
  return Error::Ok;
}

}  // namespace wb::engine
