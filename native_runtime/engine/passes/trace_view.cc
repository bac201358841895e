#include "engine/passes/trace_view.h"

#include <algorithm>

#include "engine/passes/segments.h"

namespace wb::engine {
namespace {

using Dimensions = std::vector<std::vector<Atom>>;

bool transpose(const Node& node, Dimensions& dimensions) {
  Dimensions result;
  for (std::size_t d = 0; d < dimensions.size(); ++d) result.push_back(dimensions[node.attributes.permutation[d]]);
  dimensions = std::move(result);
  return true;
}

bool slice(const Node& node, const Value& in, const Value& out, StridedView& view) {
  const Attributes& a = node.attributes;
  std::vector<Atom>& atoms = view.dimensions[static_cast<std::size_t>(a.axis)];
  if ((in.dynamic >> a.axis & 1U) != 0 || a.step != 1 || atoms.size() > 1) return false;
  const std::int64_t size = in.shape.sizes[a.axis];
  const std::int64_t begin = std::clamp<std::int64_t>(a.begin < 0 ? a.begin + size : a.begin, 0, size);
  if (atoms.empty()) return begin == 0;
  view.begin[atoms[0].dimension] += begin * atoms[0].step;
  atoms[0].size = out.shape.sizes[a.axis];
  if (atoms[0].size == 1) atoms.clear();
  return true;
}

// Cuts atoms so that they make up dimensions of the given sizes.
bool deal(std::vector<Atom> atoms, const Value& out, const Segment& segment, Dimensions& result) {
  std::size_t next = 0;
  for (int d = segment.out_begin; d < segment.out_end; ++d) {
    std::vector<Atom> own;
    std::int64_t wanted = out.shape.sizes[d];
    while (wanted > 1) {
      if (next == atoms.size()) return false;
      Atom& atom = atoms[next];
      if (wanted % atom.size == 0) {
        wanted /= atom.size;
        own.push_back(atom);
        ++next;
      } else if (atom.size % wanted == 0) {
        const std::int64_t rest = atom.size / wanted;
        own.push_back({atom.dimension, wanted, atom.step * rest});
        atom.size = rest;
        wanted = 1;
      } else {
        return false;
      }
    }
    // Two halves of a dimension that meet again are one.
    for (std::size_t i = 1; i < own.size();) {
      if (own[i - 1].dimension == own[i].dimension && own[i - 1].step == own[i].size * own[i].step) {
        own[i].size *= own[i - 1].size;
        own.erase(own.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      } else {
        ++i;
      }
    }
    result.push_back(std::move(own));
  }
  return next == atoms.size();
}

bool reshape(const Node& node, const Value& in, const Value& out, Dimensions& dimensions) {
  std::vector<Segment> segments;
  if (!segments_of(in, node, out, &segments)) return false;
  Dimensions result;
  for (const Segment& segment : segments) {
    if (segment.single()) {
      result.push_back(dimensions[static_cast<std::size_t>(segment.in_begin)]);
      continue;
    }
    std::vector<Atom> atoms;
    for (int d = segment.in_begin; d < segment.in_end; ++d) {
      const std::vector<Atom>& more = dimensions[static_cast<std::size_t>(d)];
      atoms.insert(atoms.end(), more.begin(), more.end());
    }
    if (!deal(std::move(atoms), out, segment, result)) return false;
  }
  dimensions = std::move(result);
  return true;
}

bool apply(const Draft& draft, const Node& node, StridedView& view) {
  const Value& in = draft.value(node.inputs[0]);
  const Value& out = draft.value(node.outputs[0]);
  switch (node.op) {
    case Op::Transpose: return transpose(node, view.dimensions);
    case Op::Slice: return slice(node, in, out, view);
    case Op::Reshape: return reshape(node, in, out, view.dimensions);
    default: return false;
  }
}

}  // namespace

std::vector<StridedView> views_of(const Draft& draft, ValueId id) {
  constexpr std::size_t kMostNodes = 16;
  std::vector<const Node*> chain;  // the last first
  for (ValueId at = id; chain.size() < kMostNodes;) {
    const Node* node = draft.producer(at);
    if (node == nullptr || !node->post.empty()) break;
    if (node->op != Op::Transpose && node->op != Op::Slice && node->op != Op::Reshape) break;
    chain.push_back(node);
    at = node->inputs[0];
  }
  std::vector<StridedView> views;
  for (std::size_t length = chain.size(); length > 0; --length) {
    StridedView view;
    view.base = chain[length - 1]->inputs[0];
    const Value& base = draft.value(view.base);
    for (int d = 0; d < base.shape.rank; ++d) {
      const bool one = base.shape.sizes[d] == 1 && (base.dynamic >> d & 1U) == 0;
      view.dimensions.push_back(one ? std::vector<Atom>{} : std::vector<Atom>{{d, base.shape.sizes[d], 1}});
    }
    bool holds = true;
    for (std::size_t i = length; i-- > 0 && holds;) holds = apply(draft, *chain[i], view);
    if (holds) views.push_back(std::move(view));
  }
  return views;
}

}  // namespace wb::engine
