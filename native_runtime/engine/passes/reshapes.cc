// Makes the fewest Reshape nodes: chains become one, and products of rows need none around them. What is left costs
// nothing to run, but stands between nodes that could be fused.
#include <bit>

#include "engine/passes/segments.h"

namespace wb::engine {
namespace {

bool is_dynamic(const Value& value, int d) { return (value.dynamic >> d & 1U) != 0; }

// Of each dimension of the result that is dynamic, the dimension of the input that it is.
bool dynamic_sources(const Draft& draft, const Node& reshape, int* from) {
  const Value& in = draft.value(reshape.inputs[0]);
  const Value& out = draft.value(reshape.outputs[0]);
  std::vector<Segment> segments;
  if (!segments_of(in, reshape, out, &segments)) return false;
  for (const Segment& segment : segments) {
    for (int d = segment.out_begin; d < segment.out_end; ++d) from[d] = is_dynamic(out, d) ? segment.in_begin : -1;
  }
  return true;
}

void set_rules(Node& reshape, const Value& out, const int* from) {
  reshape.attributes.rank = out.shape.rank;
  for (int d = 0; d < out.shape.rank; ++d) {
    reshape.attributes.sizes[d] = {};
    if (from[d] >= 0) {
      reshape.attributes.sizes[d].from_input = static_cast<std::int8_t>(from[d]);
    } else {
      reshape.attributes.sizes[d].value = out.shape.sizes[d];
    }
  }
}

// second(first(x)) as one node that reads x.
bool join(const Draft& draft, const Node& first, Node& second) {
  int outer[kMaxRank];
  int inner[kMaxRank];
  const Value& out = draft.value(second.outputs[0]);
  if (dynamic_sources(draft, first, inner) && dynamic_sources(draft, second, outer)) {
    for (int d = 0; d < out.shape.rank; ++d) outer[d] = outer[d] < 0 ? -1 : inner[outer[d]];
    set_rules(second, out, outer);
  } else if (std::popcount(out.dynamic) == 1 && out.shape.numel() != 0) {
    // The number of elements stays: one dimension follows from the others.
    constexpr int kStatic[kMaxRank] = {-1, -1, -1, -1, -1, -1, -1, -1};
    set_rules(second, out, kStatic);
    second.attributes.sizes[std::countr_zero(out.dynamic)] = {.value = SizeRule::kInfer};
  } else {
    return false;
  }
  second.inputs[0] = first.inputs[0];
  return true;
}

bool changes_nothing(const Draft& draft, const Node& reshape) {
  const Value& in = draft.value(reshape.inputs[0]);
  const Value& out = draft.value(reshape.outputs[0]);
  if (!(in.shape == out.shape) || in.dynamic != out.dynamic) return false;
  if (out.dynamic == 0 || (std::popcount(out.dynamic) == 1 && out.shape.numel() != 0))
    return true;  // the number of elements is the same
  for (int d = 0; d < out.shape.rank; ++d) {
    if (is_dynamic(out, d) && (reshape.attributes.sizes[d].from_input != d || reshape.attributes.sizes[d].value > 1)) {
      return false;
    }
  }
  return true;
}

// [rows, k] x [k, n], whose rows are a Reshape of [..., m, k]: the product of the latter, reshaped.
bool give_rows(Draft& draft, Node& product, Node* reshaped) {
  if (product.op != Op::MatMul || !product.post.empty()) return false;
  const Node* reshape = draft.producer(product.inputs[0]);
  const Value out = draft.value(product.outputs[0]);
  if (reshape == nullptr || reshape->op != Op::Reshape || out.shape.rank != 2) return false;
  if (draft.value(product.inputs[1]).shape.rank != 2) return false;
  const Value x = draft.value(reshape->inputs[0]);
  const Value a = draft.value(product.inputs[0]);
  const int last = x.shape.rank - 1;
  if (last < 2 || is_dynamic(x, last) || is_dynamic(a, 1) || is_dynamic(out, 1)) return false;
  if (x.shape.sizes[last] != a.shape.sizes[1] || a.shape.numel() == 0) return false;
  Shape shape = x.shape;
  shape.sizes[last] = out.shape.sizes[1];
  const ValueId rows = draft.add_value(shape, out.dtype, x.dynamic, out.quantization);
  product.inputs[0] = reshape->inputs[0];
  reshaped->op = Op::Reshape;
  reshaped->inputs = {rows};
  reshaped->outputs = {product.outputs[0]};
  constexpr int kStatic[kMaxRank] = {-1, -1, -1, -1, -1, -1, -1, -1};
  set_rules(*reshaped, out, kStatic);
  if (is_dynamic(out, 0)) reshaped->attributes.sizes[0] = {.value = SizeRule::kInfer};
  product.outputs[0] = rows;
  draft.move_taps_reshaped(reshaped->outputs[0], rows);
  return true;
}

// The product of rows goes through a Reshape only, which keeps the last dimension: its rows are reshaped instead.
bool pull_reshape(Draft& draft, Node& product, Node* before) {
  if (product.op != Op::MatMul || !product.post.empty() || draft.value(product.inputs[1]).shape.rank != 2) return false;
  const ValueId rows = product.outputs[0];
  const Value out = draft.value(rows);
  if (out.kind != ValueKind::Temporary || draft.readers(rows) != 1) return false;
  const int columns = out.shape.rank - 1;
  for (Node& reader : draft.graph.nodes) {
    if (reader.op != Op::Reshape || reader.outputs.empty() || reader.inputs[0] != rows) continue;
    const Value result = draft.value(reader.outputs[0]);
    const int last = result.shape.rank - 1;
    const int dynamic = std::popcount(result.dynamic);
    if (last < 1 || is_dynamic(result, last) || is_dynamic(out, columns) || dynamic > 1 || out.shape.numel() == 0 ||
        result.shape.sizes[last] != out.shape.sizes[columns]) {
      return false;
    }
    const Value a = draft.value(product.inputs[0]);
    if (a.quantization.kind == Quantization::Kind::PerRow) return false;  // what stands behind the rows would not move
    Value reshaped = result;
    reshaped.shape.sizes[last] = a.shape.sizes[a.shape.rank - 1];
    const ValueId id = draft.add_value(reshaped.shape, a.dtype, reshaped.dynamic, a.quantization);
    before->op = Op::Reshape;
    before->inputs = {product.inputs[0]};
    before->outputs = {id};
    constexpr int kStatic[kMaxRank] = {-1, -1, -1, -1, -1, -1, -1, -1};
    set_rules(*before, reshaped, kStatic);
    if (dynamic == 1) before->attributes.sizes[std::countr_zero(result.dynamic)] = {.value = SizeRule::kInfer};
    draft.move_taps_reshaped(rows, reader.outputs[0]);
    product.inputs[0] = id;
    product.outputs[0] = reader.outputs[0];
    reader.outputs.clear();
    return true;
  }
  return false;
}

}  // namespace

void merge_reshapes(Draft& draft) {
  draft.index();
  for (Node& node : draft.graph.nodes) {
    if (node.op != Op::Reshape) continue;
    const Node* before = draft.producer(node.inputs[0]);
    if (before != nullptr && before->op == Op::Reshape) (void)join(draft, *before, node);
  }
  for (Node& node : draft.graph.nodes) {
    if (node.op != Op::Reshape || !changes_nothing(draft, node)) continue;
    if (draft.value(node.outputs[0]).kind != ValueKind::Temporary) {
      node.op = Op::Copy;
      continue;
    }
    const ValueId out = node.outputs[0];
    node.outputs.clear();
    draft.replace(out, node.inputs[0], Permutation::identity(draft.value(out).shape.rank));
  }
  draft.sweep();
  remove_dead_code(draft);
}

void unfold_products(Draft& draft) {
  draft.index();
  std::vector<Node> nodes;
  bool any = false;
  for (Node& node : draft.graph.nodes) {
    Node view;
    const bool pulled = pull_reshape(draft, node, &view);
    if (pulled) nodes.push_back(view);
    const bool given = !pulled && give_rows(draft, node, &view);
    nodes.push_back(node);
    if (given) nodes.push_back(std::move(view));
    any = any || pulled || given;
  }
  if (any) {
    // A Reshape that was pulled up comes later in the list, and was emptied after it was copied or will be.
    std::erase_if(nodes, [](const Node& node) { return node.outputs.empty(); });
    draft.graph.nodes = std::move(nodes);
  }
  merge_reshapes(draft);
}

}  // namespace wb::engine
