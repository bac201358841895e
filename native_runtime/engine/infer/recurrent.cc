#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {
namespace {

bool is(const Shape& shape, std::initializer_list<std::int64_t> sizes) {
  if (shape.rank != sizes.size()) return false;
  const std::int64_t* at = shape.sizes;
  for (const std::int64_t size : sizes) {
    if (*at++ != size) return false;
  }
  return true;
}

}  // namespace

Error infer_recurrent(const InferContext& context) {
  const Attributes& a = context.node.attributes;
  const Shape& x = context.in(0);
  const bool lstm = context.node.op == Op::Lstm;
  const std::int64_t directions = a.bidirectional ? 2 : 1;
  const std::int64_t gates = (lstm ? 4 : 3) * a.hidden;
  if (x.rank != 3) return context.report.fail(Error::InvalidProgram, "expected 3 dimensions, found %d", x.rank);
  const std::int64_t batch = x.sizes[a.batch_first ? 0 : 1];
  const std::size_t first = lstm ? 3 : 2;
  for (std::size_t i = 1; i < first; ++i) {
    if (!context.has(i) || is(context.in(i), {a.layers * directions, batch, a.hidden})) continue;
    return context.report.fail(Error::InvalidProgram, "input %zu: expected [%lld, %lld, %lld], found %s", i,
                               static_cast<long long>(a.layers * directions), static_cast<long long>(batch),
                               static_cast<long long>(a.hidden), ShapeText(context.in(i)).text);
  }
  for (std::int64_t layer = 0; layer < a.layers * directions; ++layer) {
    const std::size_t at = first + static_cast<std::size_t>(layer) * 4;
    const std::int64_t width = layer < directions ? x.sizes[2] : directions * a.hidden;
    const bool fits = is(context.in(at), {gates, width}) && is(context.in(at + 1), {gates, a.hidden}) &&
                      (!context.has(at + 2) || is(context.in(at + 2), {gates})) &&
                      (!context.has(at + 3) || is(context.in(at + 3), {gates}));
    if (fits) continue;
    return context.report.fail(
        Error::InvalidProgram, "layer %lld: weights %s, %s for %lld gates, inputs of %lld and %lld hidden",
        static_cast<long long>(layer), ShapeText(context.in(at)).text, ShapeText(context.in(at + 1)).text,
        static_cast<long long>(gates), static_cast<long long>(width), static_cast<long long>(a.hidden));
  }
  Shape y = x;
  y.sizes[2] = directions * a.hidden;
  Shape state;
  state.rank = 3;
  state.sizes[0] = a.layers * directions;
  state.sizes[1] = batch;
  state.sizes[2] = a.hidden;
  context.out() = y;
  for (std::size_t i = 1; i < context.outputs.size(); ++i) context.outputs[i] = state;
  return Error::Ok;
}

}  // namespace wb::engine
