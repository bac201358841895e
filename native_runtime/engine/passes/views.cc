#include "engine/passes/views.h"

#include <algorithm>
#include <optional>

#include "engine/passes/draft.h"

namespace wb::engine {
namespace {

bool is_dynamic(const Value& value, int d) { return (value.dynamic >> d & 1U) != 0; }

// Elements of one index of `axis`, if that is the same for all sizes.
std::optional<std::int64_t> fixed_inner(const Value& value, int axis) {
  std::int64_t count = 1;
  for (int d = axis + 1; d < value.shape.rank; ++d) {
    if (is_dynamic(value, d)) return std::nullopt;
    count *= value.shape.sizes[d];
  }
  return count;
}

bool outer_is_one(const Value& value, int axis) {
  for (int d = 0; d < axis; ++d) {
    if (is_dynamic(value, d) || value.shape.sizes[d] != 1) return false;
  }
  return true;
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {
    views_.aliases.resize(graph.values.size());
    for (ValueId id = 0; id < graph.values.size(); ++id) views_.aliases[id].root = id;
    views_.skipped.resize(graph.nodes.size());
  }

  Views run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) views_.skipped[n] = try_node(graph_.nodes[n]);
    find_in_place();
    return std::move(views_);
  }

 private:
  [[nodiscard]] const Value& value(ValueId id) const { return graph_.values[id]; }

  bool try_node(const Node& node) {
    if (!node.post.empty()) return false;
    switch (node.op) {
      case Op::Copy:
      case Op::Reshape: return show(node.inputs[0], node.outputs[0], 0, true);
      case Op::Slice: {
        if (takes_all(node)) return show(node.inputs[0], node.outputs[0], 0, true);
        const std::optional<std::int64_t> offset = slice_offset(node);
        return offset && show(node.inputs[0], node.outputs[0], *offset, false);
      }
      case Op::Concat: return write_in_place(node);
      default: return false;
    }
  }

  [[nodiscard]] bool takes_all(const Node& node) const {
    const Attributes& a = node.attributes;
    return a.step == 1 && a.begin == 0 && a.end >= value(node.inputs[0]).shape.sizes[a.axis];
  }

  [[nodiscard]] std::optional<std::int64_t> slice_offset(const Node& node) const {
    const Attributes& a = node.attributes;
    const Value& x = value(node.inputs[0]);
    if (a.step != 1 || !outer_is_one(x, a.axis)) return std::nullopt;
    std::int64_t begin = a.begin;
    if (begin < 0) {
      if (is_dynamic(x, a.axis)) return std::nullopt;
      begin += x.shape.sizes[a.axis];
    }
    begin = std::clamp<std::int64_t>(begin, 0, x.shape.sizes[a.axis]);
    const std::optional<std::int64_t> inner = fixed_inner(x, a.axis);
    if (begin == 0) return 0;
    if (!inner) return std::nullopt;
    return begin * *inner * static_cast<std::int64_t>(element_size(x.dtype));
  }

  // `out` is the part of x from `offset` on, or all of it.
  bool show(ValueId x, ValueId out, std::int64_t offset, bool whole) {
    const Alias at = views_.resolve(x);
    if (value(out).kind == ValueKind::Temporary) {
      views_.aliases[out] = {at.root, at.offset + offset, whole && at.whole};
      return true;
    }
    // An output's memory is the caller's: what x stands in moves there, if that is all of it.
    if (!whole || !at.whole || value(at.root).kind != ValueKind::Temporary) return false;
    views_.aliases[at.root] = {out, 0};
    return true;
  }

  bool write_in_place(const Node& node) {
    const ValueId out = node.outputs[0];
    const int axis = node.attributes.axis;
    const std::optional<std::int64_t> inner = fixed_inner(value(out), axis);
    if (!inner || !outer_is_one(value(out), axis)) return false;
    std::vector<Alias> parts;
    std::int64_t offset = 0;
    bool fixed = true;
    for (const ValueId id : node.inputs) {
      const Alias at = views_.resolve(id);
      const bool again = std::ranges::any_of(parts, [&](const Alias& part) { return part.root == at.root; });
      if (!fixed || again || !at.whole || value(at.root).kind != ValueKind::Temporary) return false;
      parts.push_back({at.root, offset});
      offset += value(id).shape.sizes[axis] * *inner * static_cast<std::int64_t>(element_size(value(id).dtype));
      fixed = !is_dynamic(value(id), axis);
    }
    for (const Alias& part : parts) views_.aliases[part.root] = {out, part.offset, parts.size() == 1};
    return true;
  }

  // ---- pointwise nodes that write over an operand which nobody needs afterwards --------------------------------

  void find_in_place() {
    std::vector<std::size_t> last(graph_.values.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto use = [&](ValueId id) {
        if (id != kNoValue) last[views_.resolve(id).root] = n;
      };
      std::ranges::for_each(graph_.nodes[n].inputs, use);
      std::ranges::for_each(graph_.nodes[n].post_inputs, use);
      std::ranges::for_each(graph_.nodes[n].outputs, use);
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const ValueId out = node.outputs[0];
      if (node.op != Op::Pointwise || views_.resolve(out).root != out) continue;
      if (value(out).kind != ValueKind::Temporary) continue;
      for (const ValueId id : node.inputs) {
        const Alias at = views_.resolve(id);
        if (last[at.root] != n || !may_overwrite(node, id, at)) continue;
        views_.aliases[out] = at;
        last[at.root] = last[out];
        break;
      }
    }
  }

  [[nodiscard]] bool may_overwrite(const Node& node, ValueId id, const Alias& at) const {
    const Value& out = value(node.outputs[0]);
    const Value& in = value(id);
    if (value(at.root).kind != ValueKind::Temporary || !at.whole) return false;
    if (!(in.shape == out.shape) || in.dynamic != out.dynamic || element_size(in.dtype) != element_size(out.dtype)) {
      return false;
    }
    return std::ranges::all_of(node.inputs,
                               [&](ValueId other) { return other == id || views_.resolve(other).root != at.root; });
  }

  const Graph& graph_;
  Views views_;
};

}  // namespace

Alias Views::resolve(ValueId id) const {
  Alias alias{id, 0};
  while (aliases[alias.root].root != alias.root) {
    const Alias& next = aliases[alias.root];
    alias = {next.root, alias.offset + next.offset, alias.whole && next.whole};
  }
  return alias;
}

Views find_views(const Graph& graph, bool enabled) {
  if (enabled) return Finder(graph).run();
  Views views;
  views.aliases.resize(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) views.aliases[id].root = id;
  views.skipped.resize(graph.nodes.size());
  return views;
}

}  // namespace wb::engine
