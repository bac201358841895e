// Operators that read their operands with strides need no Transpose before them: attention reads heads inside rows,
// a matrix product reads its second operand transposed.
#include <algorithm>

#include "engine/passes/trace_view.h"

namespace wb::engine {
namespace {

bool is_one(const Value& value, int d) { return value.shape.sizes[d] == 1 && (value.dynamic >> d & 1U) == 0; }

// The dimensions that are not 1.
std::vector<int> long_dimensions(const Value& value) {
  std::vector<int> result;
  for (int d = 0; d < value.shape.rank; ++d) {
    if (!is_one(value, d)) result.push_back(d);
  }
  return result;
}

// Reads a value as [leading..., rest...], dimensions of 1 aside: what Attention is to see of it.
struct Seen {
  Value value;
  int from[kMaxRank] = {};  // of each dimension that is dynamic, which one of the base it is
};

// [..., heads, length, size] as a view of rows [..., length, heads, size] or of columns of [..., length, width].
// Dimensions of 1 may stand anywhere.
class HeadsReader {
 public:
  HeadsReader(const Draft& draft, const StridedView& view, const Value& operand)
      : view_(view), operand_(operand), base_(draft.value(view.base)), base_dimensions_(long_dimensions(base_)) {}

  bool read(HeadOrder* order, Seen* seen) {
    const int rank = operand_.shape.rank;
    const int leading = rank - 3;
    seen->value = base_;
    seen->value.kind = ValueKind::Temporary;
    seen->value.shape = {};
    seen->value.dynamic = 0;
    for (int d = 0; d < leading; ++d) {
      if (!take_whole(d, seen)) return false;
    }
    if (!take_whole(leading + 1, seen)) return false;
    if (next_ > base_dimensions_.size()) return false;
    const std::size_t left = base_dimensions_.size() - next_;
    const std::int64_t count = operand_.shape.sizes[leading];
    const std::int64_t size = operand_.shape.sizes[rank - 1];
    if (left == 1 || left == 0) return take_columns(leading, count, size, left, order, seen);
    if (left != 2 || !take_whole(leading, seen) || !take_whole(rank - 1, seen)) return false;
    *order = {.kind = HeadOrder::Kind::Inner};
    return true;
  }

 private:
  // Dimension d of the operand is the next one of the base, all of it.
  bool take_whole(int d, Seen* seen) {
    const std::vector<Atom>& atoms = view_.dimensions[static_cast<std::size_t>(d)];
    Shape& shape = seen->value.shape;
    if (shape.rank >= kMaxRank) return false;
    if (is_one(operand_, d)) {
      shape.sizes[shape.rank++] = 1;
      return true;
    }
    if (next_ >= base_dimensions_.size() || atoms.size() != 1) return false;
    const int from = base_dimensions_[next_++];
    const Atom& atom = atoms[0];
    if (atom.dimension != from || atom.step != 1 || atom.size != base_.shape.sizes[from] || view_.begin[from] != 0) {
      return false;
    }
    seen->from[shape.rank] = from;
    if ((base_.dynamic >> from & 1U) != 0) {
      seen->value.dynamic = static_cast<std::uint8_t>(seen->value.dynamic | 1U << shape.rank);
    }
    shape.sizes[shape.rank++] = base_.shape.sizes[from];
    return true;
  }

  bool take_columns(int heads, std::int64_t count, std::int64_t size, std::size_t left, HeadOrder* order, Seen* seen) {
    const int last = left == 1 ? base_dimensions_[next_] : -1;
    if (last >= 0 && (base_.dynamic >> last & 1U) != 0) return false;
    const auto fits = [&](int d, std::int64_t wanted, std::int64_t step) {
      const std::vector<Atom>& atoms = view_.dimensions[static_cast<std::size_t>(d)];
      if (wanted == 1) return atoms.empty();
      return atoms.size() == 1 && atoms[0].dimension == last && atoms[0].size == wanted && atoms[0].step == step;
    };
    Shape& shape = seen->value.shape;
    if (!fits(heads, count, size) || !fits(heads + 2, size, 1) || shape.rank >= kMaxRank) return false;
    shape.sizes[shape.rank++] = last < 0 ? 1 : base_.shape.sizes[last];
    *order = {
        .kind = HeadOrder::Kind::Columns, .count = count, .size = size, .begin = last < 0 ? 0 : view_.begin[last]};
    return true;
  }

  const StridedView& view_;
  const Value& operand_;
  const Value& base_;
  std::vector<int> base_dimensions_;
  std::size_t next_ = 0;
};

// The base as it is to be seen: itself, or a Reshape of it, which costs nothing.
ValueId reshaped(Draft& draft, ValueId base, const Seen& seen, std::vector<Node>& nodes) {
  if (draft.value(base).shape == seen.value.shape && draft.value(base).dynamic == seen.value.dynamic) return base;
  Node node;
  node.op = Op::Reshape;
  node.inputs = {base};
  node.attributes.rank = seen.value.shape.rank;
  for (int d = 0; d < seen.value.shape.rank; ++d) {
    if ((seen.value.dynamic >> d & 1U) != 0) {
      node.attributes.sizes[d].from_input = static_cast<std::int8_t>(seen.from[d]);
    } else {
      node.attributes.sizes[d].value = seen.value.shape.sizes[d];
    }
  }
  node.outputs = {draft.add_like(seen.value)};
  nodes.push_back(node);
  return node.outputs[0];
}

void absorb_into_attention(Draft& draft, Node& node, std::vector<Node>& nodes) {
  for (std::size_t i = 0; i < 3; ++i) {
    HeadOrder& order = node.attributes.head_orders[i];
    const Value operand = draft.value(node.inputs[i]);
    if (order.kind != HeadOrder::Kind::Outer || operand.shape.rank < 3) continue;
    if (operand.shape.numel() == 0 || (operand.dynamic >> (operand.shape.rank - 1) & 1U) != 0) continue;
    for (const StridedView& view : views_of(draft, node.inputs[i])) {
      Seen seen;
      if (!HeadsReader(draft, view, operand).read(&order, &seen)) continue;
      node.inputs[i] = reshaped(draft, view.base, seen, nodes);
      break;
    }
  }
}

// A mask that adds zero to every score.
bool adds_nothing(const Value& mask) {
  if (mask.kind != ValueKind::Constant || mask.dtype != ScalarType::Float) return false;
  const auto* data = static_cast<const float*>(mask.data);
  return std::all_of(data, data + mask.shape.numel(), [](float value) { return value == 0; });
}

// A Transpose that does [..., h, l, e] -> [..., l, h, e], dimensions of 1 aside.
bool swaps_heads(const Node& transpose, const Value& x) {
  const int rank = x.shape.rank;
  std::vector<int> wanted;
  for (int d = 0; d < rank; ++d) {
    const int from = d == rank - 3 ? rank - 2 : d == rank - 2 ? rank - 3 : d;
    if (!is_one(x, from)) wanted.push_back(from);
  }
  std::vector<int> found;
  for (int d = 0; d < rank; ++d) {
    if (!is_one(x, transpose.attributes.permutation[d])) found.push_back(transpose.attributes.permutation[d]);
  }
  return wanted == found;
}

// The result goes through a Transpose only: it is computed in that order, and what was a Transpose is a Reshape.
void absorb_after_attention(Draft& draft, Node& node) {
  const ValueId out = node.outputs[0];
  const Value value = draft.value(out);
  const int rank = value.shape.rank;
  if (node.attributes.head_orders[3].kind != HeadOrder::Kind::Outer || rank < 3 || !node.post.empty() ||
      value.kind != ValueKind::Temporary || draft.readers(out) != 1) {
    return;
  }
  Permutation swap = Permutation::identity(rank);
  std::swap(swap.at[rank - 3], swap.at[rank - 2]);
  for (Node& reader : draft.graph.nodes) {
    if (reader.op != Op::Transpose || reader.outputs.empty() || reader.inputs[0] != out) continue;
    if (!swaps_heads(reader, value)) return;
    const Permutation from_swapped = swap.then(Permutation::of(reader, rank));  // swap is its own inverse
    node.attributes.head_orders[3].kind = HeadOrder::Kind::Inner;
    draft.move_taps(out, out, swap);
    draft.value(out).shape = swap.apply(value.shape);
    draft.value(out).dynamic = swap.apply_bits(value.dynamic);
    std::copy_n(from_swapped.at, kMaxRank, reader.attributes.permutation);
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
  std::vector<std::pair<std::size_t, std::vector<Node>>> before;  // nodes to be put before others
  for (std::size_t n = 0; n < draft.graph.nodes.size(); ++n) {
    Node& node = draft.graph.nodes[n];
    std::vector<Node> views;
    if (node.op == Op::Attention) {
      const bool masked = node.inputs.size() > 3 && node.inputs[3] != kNoValue;
      if (masked && adds_nothing(draft.value(node.inputs[3]))) node.inputs[3] = kNoValue;
      absorb_into_attention(draft, node, views);
      absorb_after_attention(draft, node);
    }
    if (node.op == Op::MatMul) absorb_into_product(draft, node);
    if (!views.empty()) before.emplace_back(n, std::move(views));
  }
  std::vector<Node> nodes;
  auto next = before.begin();
  for (std::size_t n = 0; n < draft.graph.nodes.size(); ++n) {
    if (next != before.end() && next->first == n) {
      nodes.insert(nodes.end(), next->second.begin(), next->second.end());
      ++next;
    }
    nodes.push_back(std::move(draft.graph.nodes[n]));
  }
  draft.graph.nodes = std::move(nodes);
  merge_transposes(draft);
}

}  // namespace wb::engine
