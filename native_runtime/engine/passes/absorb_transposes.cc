// Operators that read their operands with strides need no Transpose before them: attention reads heads inside rows,
// a matrix product reads its second operand transposed.
#include <algorithm>

#include "engine/passes/trace_view.h"

namespace wb::engine {
namespace {

// True if the dimension is all of dimension d of the base (which may be 1).
bool is_whole(const std::vector<Atom>& atoms, const Value& base, int d) {
  if (d >= base.shape.rank) return false;
  const bool one = base.shape.sizes[d] == 1 && (base.dynamic >> d & 1U) == 0;
  if (one) return atoms.empty();
  return atoms.size() == 1 && atoms[0].dimension == d && atoms[0].size == base.shape.sizes[d] && atoms[0].step == 1;
}

// [..., heads, length, size] as a view of [..., length, heads, size] or of columns of [..., length, width].
bool heads_in(const Draft& draft, const StridedView& view, const Shape& shape, HeadOrder* order) {
  const Value& base = draft.value(view.base);
  const int rank = static_cast<int>(view.dimensions.size());
  if (rank < 3) return false;
  const int leading = rank - 3;
  for (int d = 0; d < leading; ++d) {
    if (!is_whole(view.dimensions[static_cast<std::size_t>(d)], base, d) || view.begin[d] != 0) return false;
  }
  const std::vector<Atom>& heads = view.dimensions[static_cast<std::size_t>(leading)];
  const std::vector<Atom>& length = view.dimensions[static_cast<std::size_t>(leading) + 1];
  const std::vector<Atom>& size = view.dimensions[static_cast<std::size_t>(leading) + 2];
  if (!is_whole(length, base, leading) || view.begin[leading] != 0) return false;
  if (base.shape.rank == rank && is_whole(heads, base, leading + 1) && is_whole(size, base, leading + 2)) {
    if (view.begin[leading + 1] != 0 || view.begin[leading + 2] != 0) return false;
    *order = {.kind = HeadOrder::Kind::Inner};
    return true;
  }
  const int last = leading + 1;
  if (base.shape.rank != rank - 1 || (base.dynamic >> last & 1U) != 0) return false;
  const std::int64_t count = shape.sizes[leading];
  const std::int64_t width = shape.sizes[leading + 2];
  const auto fits = [&](const std::vector<Atom>& atoms, std::int64_t wanted, std::int64_t step) {
    if (wanted == 1) return atoms.empty();
    return atoms.size() == 1 && atoms[0].dimension == last && atoms[0].size == wanted && atoms[0].step == step;
  };
  if (!fits(heads, count, width) || !fits(size, width, 1)) return false;
  *order = {.kind = HeadOrder::Kind::Columns, .count = count, .size = width, .begin = view.begin[last]};
  return true;
}

void absorb_into_attention(Draft& draft, Node& node) {
  for (std::size_t i = 0; i < 3; ++i) {
    HeadOrder& order = node.attributes.head_orders[i];
    if (order.kind != HeadOrder::Kind::Outer) continue;
    const Shape shape = draft.value(node.inputs[i]).shape;
    if ((draft.value(node.inputs[i]).dynamic >> (shape.rank - 1) & 1U) != 0) continue;
    for (const StridedView& view : views_of(draft, node.inputs[i])) {
      if (!heads_in(draft, view, shape, &order)) continue;
      node.inputs[i] = view.base;
      break;
    }
  }
}

// The result goes through a Transpose only: [..., h, l, e] is wanted as [..., l, h, e].
void absorb_after_attention(Draft& draft, Node& node) {
  const ValueId out = node.outputs[0];
  const int rank = draft.value(out).shape.rank;
  if (node.attributes.head_orders[3].kind != HeadOrder::Kind::Outer || rank < 3 || !node.post.empty() ||
      draft.value(out).kind != ValueKind::Temporary || draft.readers(out) != 1) {
    return;
  }
  Permutation swap = Permutation::identity(rank);
  std::swap(swap.at[rank - 3], swap.at[rank - 2]);
  for (Node& reader : draft.graph.nodes) {
    if (reader.op != Op::Transpose || reader.inputs[0] != out || !(Permutation::of(reader, rank) == swap)) continue;
    node.attributes.head_orders[3].kind = HeadOrder::Kind::Inner;
    const ValueId to = reader.outputs[0];
    draft.move_taps(out, to, swap);
    node.outputs[0] = to;
    node.sources.insert(node.sources.end(), reader.sources.begin(), reader.sources.end());
    reader.outputs.clear();
    return;
  }
}

void absorb_into_product(Draft& draft, Node& node) {
  const Node* from = draft.producer(node.inputs[1]);
  if (from == nullptr || from->op != Op::Transpose) return;
  const int rank = draft.value(node.inputs[1]).shape.rank;
  Permutation swap = Permutation::identity(rank);
  std::swap(swap.at[rank - 2], swap.at[rank - 1]);
  if (!(Permutation::of(*from, rank) == swap)) return;
  node.inputs[1] = from->inputs[0];
  node.attributes.transpose_b = !node.attributes.transpose_b;
}

}  // namespace

void absorb_transposes(Draft& draft) {
  draft.index();
  for (Node& node : draft.graph.nodes) {
    if (node.op == Op::Attention) {
      absorb_into_attention(draft, node);
      absorb_after_attention(draft, node);
    }
    if (node.op == Op::MatMul) absorb_into_product(draft, node);
  }
  draft.sweep();
  remove_dead_code(draft);
}

}  // namespace wb::engine
