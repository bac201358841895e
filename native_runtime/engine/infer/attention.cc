#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {
namespace {

// An operand of Attention as its heads: [leading..., heads, length, size].
struct Heads {
  Shape leading;
  std::int64_t heads = 1, length = 0, size = 0;
};

bool heads_of(const Shape& shape, const HeadOrder& order, Heads* heads) {
  const bool outer = order.kind == HeadOrder::Kind::Outer;
  const int tail = order.kind == HeadOrder::Kind::Inner ? 3 : 2;
  if (shape.rank < tail) return false;
  const std::int64_t* last = shape.sizes + shape.rank;
  heads->size = last[-1];
  heads->length = order.kind == HeadOrder::Kind::Inner ? last[-3] : last[-2];
  heads->leading = shape;
  heads->leading.rank = static_cast<std::uint8_t>(shape.rank - tail);
  if (outer && shape.rank >= 3) {
    heads->heads = last[-3];
    heads->leading.rank = static_cast<std::uint8_t>(shape.rank - 3);
  } else if (order.kind == HeadOrder::Kind::Inner) {
    heads->heads = last[-2];
  } else if (order.kind == HeadOrder::Kind::Columns) {
    std::int64_t width = 0;
    std::int64_t end = 0;
    if (order.count < 1 || order.size < 0 || order.begin < 0 || order.count > kMaxElements ||
        __builtin_mul_overflow(order.count, order.size, &width) || __builtin_add_overflow(width, order.begin, &end) ||
        end > last[-1]) {
      return false;
    }
    heads->heads = order.count;
    heads->size = order.size;
  }
  return true;
}

Shape result_of(const Heads& heads, const HeadOrder& order, bool has_heads) {
  Shape out = heads.leading;
  const auto push = [&](std::int64_t size) {
    if (out.rank < kMaxRank) out.sizes[out.rank++] = size;
  };
  switch (order.kind) {
    case HeadOrder::Kind::Outer:
      if (has_heads) push(heads.heads);
      push(heads.length);
      push(heads.size);
      break;
    case HeadOrder::Kind::Inner:
      push(heads.length);
      push(heads.heads);
      push(heads.size);
      break;
    case HeadOrder::Kind::Columns:
      push(heads.length);
      push(heads.heads * heads.size);
      break;
  }
  return out;
}

}  // namespace

Error infer_attention(const InferContext& context) {
  const Attributes& a = context.node.attributes;
  Heads q;
  Heads k;
  Heads v;
  bool fits = heads_of(context.in(0), a.head_orders[0], &q) && heads_of(context.in(1), a.head_orders[1], &k) &&
              heads_of(context.in(2), a.head_orders[2], &v);
  fits = fits && q.size == k.size && k.length == v.length && k.heads == v.heads &&
         (k.heads == 1 || (k.heads != 0 && q.heads % k.heads == 0));
  Heads out = q;
  fits = fits && broadcast(q.leading, k.leading, &out.leading) && broadcast(out.leading, v.leading, &out.leading);
  const HeadOrder& order = a.head_orders[3];
  const bool has_heads = context.in(0).rank >= 3 || a.head_orders[0].kind != HeadOrder::Kind::Outer;
  fits = fits && out.leading.rank + 3 <= kMaxRank;
  out.size = v.size;
  if (fits && order.kind == HeadOrder::Kind::Columns) {
    fits = order.begin == 0 && order.count == out.heads && order.size == out.size &&
           (out.heads == 0 || out.size <= kMaxElements / out.heads);
  }
  if (!fits) {
    return context.report.fail(Error::InvalidProgram, "q %s, k %s and v %s don't fit together",
                               ShapeText(context.in(0)).text, ShapeText(context.in(1)).text,
                               ShapeText(context.in(2)).text);
  }
  if (context.has(3)) {
    const Shape scores = result_of({out.leading, out.heads, q.length, k.length}, {}, has_heads);
    if (!broadcasts_to(context.in(3), scores)) {
      return context.report.fail(Error::InvalidProgram, "mask %s can't be broadcast to %s",
                                 ShapeText(context.in(3)).text, ShapeText(scores).text);
    }
  }
  context.out() = result_of(out, order, has_heads);
  return Error::Ok;
}

}  // namespace wb::engine
