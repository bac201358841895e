// Makes the fewest Transpose nodes: joins chains of them, moves them behind reshapes where others wait, and turns those
// that move nothing into reshapes.
#include <algorithm>
#include <cstring>

#include "engine/passes/layout.h"
#include "engine/passes/segments.h"

namespace wb::engine {
namespace {

// A Reshape node to the sizes of `out`, whose dimension d is dimension from[d] of x or, if that is negative, static.
Node make_reshape(ValueId x, ValueId out, const Value& value, const int* from) {
  Node node;
  node.op = Op::Reshape;
  node.inputs = {x};
  node.outputs = {out};
  node.attributes.rank = value.shape.rank;
  for (int d = 0; d < value.shape.rank; ++d) {
    SizeRule& rule = node.attributes.sizes[d];
    if (from[d] >= 0) {
      rule.from_input = static_cast<std::int8_t>(from[d]);
    } else {
      rule.value = value.shape.sizes[d];
    }
  }
  return node;
}

// x -> Transpose -> Reshape becomes x -> Reshape -> Transpose, if each piece of the Reshape stands together in x.
bool sink(Draft& draft, Node& transpose, Node& reshape) {
  const ValueId x = transpose.inputs[0];
  const Value from = draft.value(x);
  const Value between = draft.value(transpose.outputs[0]);
  const Value out = draft.value(reshape.outputs[0]);
  std::vector<Segment> segments;
  if (!segments_of(between, reshape, out, &segments)) return false;
  const Permutation permutation = Permutation::of(transpose, from.shape.rank);
  for (const Segment& segment : segments) {
    for (int d = segment.in_begin + 1; d < segment.in_end; ++d) {
      if (permutation.at[d] != permutation.at[d - 1] + 1) return false;
    }
  }
  std::ranges::sort(segments, {}, [&](const Segment& segment) { return permutation.at[segment.in_begin]; });
  Value moved = out;
  moved.kind = ValueKind::Temporary;
  moved.dynamic = 0;
  int rule[kMaxRank];
  Permutation after = Permutation::identity(out.shape.rank);  // out dimension d is dimension at[d] of `moved`
  int next = 0;
  for (const Segment& segment : segments) {
    for (int d = segment.out_begin; d < segment.out_end; ++d, ++next) {
      moved.shape.sizes[next] = out.shape.sizes[d];
      const bool dynamic = (out.dynamic >> d & 1U) != 0;
      if (dynamic) moved.dynamic = static_cast<std::uint8_t>(moved.dynamic | 1U << next);
      rule[next] = dynamic ? permutation.at[segment.in_begin] : -1;
      after.at[d] = static_cast<std::uint8_t>(next);
    }
  }
  const ValueId id = draft.add_value(moved.shape, moved.dtype, moved.dynamic, moved.quantization);
  Node first = make_reshape(x, id, moved, rule);
  first.sources = transpose.sources;
  Node second = draft.make_transpose(id, after, reshape.outputs[0]);
  second.sources = reshape.sources;
  std::erase_if(draft.taps, [&](const Tap& tap) { return tap.value == transpose.outputs[0]; });
  transpose = std::move(first);
  reshape = std::move(second);
  return true;
}

bool reads_all_transpose(const Draft& draft, ValueId id) {
  bool any = false;
  for (const Node& node : draft.graph.nodes) {
    if (std::ranges::find(node.post_inputs, id) != node.post_inputs.end()) return false;
    if (std::ranges::find(node.inputs, id) == node.inputs.end()) continue;
    if (node.op != Op::Transpose) return false;
    any = true;
  }
  return any;
}

// A constant's elements in another order; null when there is no memory.
void* permuted(Draft& draft, const Value& value, const Permutation& permutation) {
  const std::size_t size = element_size(value.dtype);
  auto* to = static_cast<std::byte*>(draft.own(bytes_of(value)));
  if (to == nullptr || value.shape.numel() == 0) return to;
  std::int64_t strides[kMaxRank];
  std::int64_t step = 1;
  for (int d = value.shape.rank; d-- > 0; step *= value.shape.sizes[d]) strides[d] = step;
  const Shape shape = permutation.apply(value.shape);
  std::int64_t at[kMaxRank] = {};
  const auto* from = static_cast<const std::byte*>(value.data);
  for (std::int64_t i = 0, count = shape.numel(); i < count; ++i) {
    std::int64_t offset = 0;
    for (int d = 0; d < shape.rank; ++d) offset += at[d] * strides[permutation.at[d]];
    std::memcpy(to + static_cast<std::size_t>(i) * size, from + static_cast<std::size_t>(offset) * size, size);
    for (int d = shape.rank; d-- > 0;) {
      if (++at[d] < shape.sizes[d]) break;
      at[d] = 0;
    }
  }
  return to;
}

bool same_elements(const Node& node, const Draft& draft) {
  if (node.op == Op::Reshape || node.op == Op::Copy) return true;
  return node.op == Op::Transpose &&
         moves_nothing(Permutation::of(node, draft.value(node.inputs[0]).shape.rank), draft.value(node.inputs[0]));
}

}  // namespace

void merge_transposes(Draft& draft) {
  draft.index();
  for (Node& node : draft.graph.nodes) {
    if (node.op != Op::Transpose) continue;
    const int rank = draft.value(node.inputs[0]).shape.rank;
    const Node* before = draft.producer(node.inputs[0]);
    if (before == nullptr || before->op != Op::Transpose) continue;
    const Permutation both = Permutation::of(*before, rank).then(Permutation::of(node, rank));
    node.inputs[0] = before->inputs[0];
    std::copy_n(both.at, kMaxRank, node.attributes.permutation);
  }
  for (Node& node : draft.graph.nodes) {
    if (node.op != Op::Transpose) continue;
    const int rank = draft.value(node.inputs[0]).shape.rank;
    if (!Permutation::of(node, rank).is_identity()) continue;
    if (draft.value(node.outputs[0]).kind == ValueKind::Temporary) {
      const ValueId out = node.outputs[0];
      node.outputs.clear();
      draft.replace(out, node.inputs[0], Permutation::identity(rank));
    } else {
      node.op = Op::Copy;
    }
  }
  draft.sweep();
  remove_dead_code(draft);
}

void sink_transposes(Draft& draft) {
  for (std::size_t n = 0; n < draft.graph.nodes.size(); ++n) {
    Node& reshape = draft.graph.nodes[n];
    if (reshape.op != Op::Reshape || draft.value(reshape.outputs[0]).kind != ValueKind::Temporary) continue;
    Node* transpose = draft.producer(reshape.inputs[0]);
    if (transpose == nullptr || transpose->op != Op::Transpose || draft.readers(reshape.inputs[0]) != 1) continue;
    if (reads_all_transpose(draft, reshape.outputs[0]) && sink(draft, *transpose, reshape)) draft.index();
  }
  merge_transposes(draft);
}

void free_transposes(Draft& draft) {
  for (Node& node : draft.graph.nodes) {
    if (node.op != Op::Transpose || !same_elements(node, draft)) continue;
    const Value out = draft.value(node.outputs[0]);
    int from[kMaxRank];
    for (int d = 0; d < out.shape.rank; ++d) {
      from[d] = (out.dynamic >> d & 1U) != 0 ? node.attributes.permutation[d] : -1;
    }
    std::vector<std::int32_t> sources = std::move(node.sources);
    node = make_reshape(node.inputs[0], node.outputs[0], out, from);
    node.sources = std::move(sources);
  }
}

void fold_constants(Draft& draft) {
  for (Node& node : draft.graph.nodes) {
    if (node.op != Op::Transpose && node.op != Op::Reshape && node.op != Op::Copy) continue;
    const Value from = draft.value(node.inputs[0]);
    Value& out = draft.value(node.outputs[0]);
    if (from.kind != ValueKind::Constant || out.kind != ValueKind::Temporary || out.dynamic != 0) continue;
    const void* data = from.data;
    if (!same_elements(node, draft)) data = permuted(draft, from, Permutation::of(node, from.shape.rank));
    if (data == nullptr && out.shape.numel() != 0) continue;
    out.kind = ValueKind::Constant;
    out.data = data;
    node.outputs.clear();
  }
  draft.sweep();
  draft.index();
}

void forward_outputs(Draft& draft) {
  for (Node& node : draft.graph.nodes) {
    if (node.op != Op::Copy || draft.value(node.outputs[0]).kind != ValueKind::Output) continue;
    const ValueId from = node.inputs[0];
    const ValueId to = node.outputs[0];
    Node* producer = draft.producer(from);
    if (draft.value(from).kind != ValueKind::Temporary || producer == nullptr || node.outputs[0] == from) continue;
    if (!same_quantization(draft.value(from).quantization, draft.value(to).quantization)) continue;
    std::ranges::replace(producer->outputs, from, to);
    node.outputs.clear();
    draft.replace(from, to, Permutation::identity(draft.value(to).shape.rank));
    draft.index();
  }
  draft.sweep();
  draft.index();
}

}  // namespace wb::engine
