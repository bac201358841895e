#include "engine/passes/layout.h"

#include <algorithm>
#include <map>

#include "engine/passes/min_cut.h"

namespace wb::engine {
namespace {

enum World : std::uint8_t { kOuter = 0, kInner = 1, kNone = 2 };

// Which world each value belongs to: values are joined when a node says that theirs are the same or different.
class Worlds {
 public:
  explicit Worlds(std::size_t count) : parent_(count), size_(count, 1), flip_(count), fixed_(count, kNone) {
    for (std::size_t i = 0; i < count; ++i) parent_[i] = static_cast<ValueId>(i);
  }

  // False when that contradicts what is known.
  bool join(ValueId a, ValueId b, bool differ) {
    auto [root_a, flip_a] = find(a);
    auto [root_b, flip_b] = find(b);
    if (size_[root_a] < size_[root_b]) {
      std::swap(root_a, root_b);
      std::swap(flip_a, flip_b);
    }
    const bool flip = flip_a != flip_b ? !differ : differ;  // of root_b against root_a
    if (root_a == root_b) return !flip;
    if (fixed_[root_a] != kNone && fixed_[root_b] != kNone && ((fixed_[root_a] ^ fixed_[root_b]) != 0) != flip) {
      return false;
    }
    if (fixed_[root_a] == kNone && fixed_[root_b] != kNone) {
      fixed_[root_a] = static_cast<World>(fixed_[root_b] ^ static_cast<int>(flip));
    }
    parent_[root_b] = root_a;
    size_[root_a] += size_[root_b];
    flip_[root_b] = flip;
    return true;
  }
  bool fix(ValueId id, World world) {
    const auto [root, flip] = find(id);
    const auto wanted = static_cast<World>(world ^ static_cast<int>(flip));
    if (fixed_[root] == kNone) fixed_[root] = wanted;
    return fixed_[root] == wanted;
  }
  // kNone for a value that no Transpose of this kind is connected with.
  World of(ValueId id) {
    const auto [root, flip] = find(id);
    return fixed_[root] == kNone ? kNone : static_cast<World>(fixed_[root] ^ static_cast<int>(flip));
  }

 private:
  std::pair<ValueId, bool> find(ValueId id) {
    bool flip = false;
    while (parent_[id] != id) {
      flip = flip != flip_[id];
      id = parent_[id];
    }
    return {id, flip};
  }

  std::vector<ValueId> parent_;
  std::vector<std::uint32_t> size_;
  std::vector<bool> flip_;    // against the parent
  std::vector<World> fixed_;  // of roots
};

class Layout {
 public:
  Layout(Draft& draft, const Permutation& inward) : draft_(draft), inward_(inward), worlds_(draft.graph.values.size()) {
    find_worlds();
  }

  void run() {
    cut();
    rewrite();
  }

 private:
  enum class Role : std::uint8_t { Fixed, Agnostic, InputOnly, Transpose };

  [[nodiscard]] bool has_rank(ValueId id) const { return draft_.value(id).shape.rank == inward_.rank; }

  // ---- who takes part ----------------------------------------------------------------------------------------

  void find_worlds() {
    const std::vector<Node>& nodes = draft_.graph.nodes;
    roles_.assign(nodes.size(), Role::Fixed);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].op == Op::Transpose && has_rank(nodes[n].inputs[0]) && connect_transpose(nodes[n])) {
        roles_[n] = Role::Transpose;
      }
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const Agnostic kind = agnostic(draft_, nodes[n], inward_);
      if (kind == Agnostic::InputOnly) roles_[n] = Role::InputOnly;
      if (kind != Agnostic::Yes) continue;
      bool fits = true;
      for (std::size_t i = 0; fits && i < nodes[n].inputs.size(); ++i) {
        if (follows_order(draft_, nodes[n], i)) fits = worlds_.join(nodes[n].outputs[0], nodes[n].inputs[i], false);
      }
      if (fits) roles_[n] = Role::Agnostic;
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const bool open = roles_[n] == Role::Transpose && worlds_.of(nodes[n].inputs[0]) == kNone;
      if (open) (void)worlds_.fix(nodes[n].inputs[0], kOuter);
    }
  }

  bool connect_transpose(const Node& node) {
    const Permutation permutation = Permutation::of(node, inward_.rank);
    const bool in = permutation == inward_;
    if (!in && !(permutation == inward_.inverse())) return false;
    // If it is its own inverse, which world is the outer one does not matter.
    if (!(inward_ == inward_.inverse()) &&
        (!worlds_.fix(node.inputs[0], in ? kOuter : kInner) || !worlds_.fix(node.outputs[0], in ? kInner : kOuter))) {
      return false;
    }
    return worlds_.join(node.inputs[0], node.outputs[0], true);
  }

  // ---- the cut -----------------------------------------------------------------------------------------------

  // Label of a value: true on the source's side, which is: stored in the order of the inner world.
  void cut() {
    MinCut graph;
    const auto source = graph.add();
    const auto sink = graph.add();
    const std::size_t count = draft_.graph.values.size();
    vertices_.assign(count, 0);
    std::vector<MinCut::Vertex> wants_inner(count);
    std::vector<MinCut::Vertex> wants_outer(count);
    for (ValueId id = 0; id < count; ++id) {
      if (worlds_.of(id) == kNone || !has_rank(id)) continue;
      const Value& value = draft_.value(id);
      vertices_[id] = graph.add();
      if (value.kind == ValueKind::Constant) continue;  // is permuted while it is loaded
      // Each of the two orders is made at most once, however many read it.
      const std::int64_t cost = cost_of(id);
      wants_inner[id] = graph.add();
      wants_outer[id] = graph.add();
      graph.connect(wants_inner[id], vertices_[id], cost);
      graph.connect(vertices_[id], wants_outer[id], cost);
      if (value.kind != ValueKind::Temporary) fix(graph, source, sink, id);
    }
    const auto link = [&](ValueId read, MinCut::Vertex reader) {
      if (vertices_[read] == 0 || draft_.value(read).kind == ValueKind::Constant) return;
      graph.connect(reader, wants_inner[read], MinCut::kInfinite);
      graph.connect(wants_outer[read], reader, MinCut::kInfinite);
    };
    for (std::size_t n = 0; n < roles_.size(); ++n) {
      const Node& node = draft_.graph.nodes[n];
      if (roles_[n] == Role::InputOnly) continue;
      if (roles_[n] == Role::Fixed) {
        for (const ValueId id : node.outputs) {
          if (id != kNoValue && vertices_[id] != 0) fix(graph, source, sink, id);
        }
        const auto want = [&](ValueId id) {
          if (id != kNoValue && vertices_[id] != 0) link(id, worlds_.of(id) == kInner ? source : sink);
        };
        std::ranges::for_each(node.inputs, want);
        std::ranges::for_each(node.post_inputs, want);
        continue;
      }
      if (vertices_[node.outputs[0]] == 0) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (follows_order(draft_, node, i)) link(node.inputs[i], vertices_[node.outputs[0]]);
      }
    }
    graph.solve(source, sink);
    inner_.assign(count, false);
    for (ValueId id = 0; id < count; ++id) {
      inner_[id] = vertices_[id] != 0 && draft_.value(id).kind != ValueKind::Constant
                       ? graph.on_source_side(vertices_[id])
                       : worlds_.of(id) == kInner;
    }
  }

  void fix(MinCut& graph, MinCut::Vertex source, MinCut::Vertex sink, ValueId id) {
    if (worlds_.of(id) == kInner) graph.connect(source, vertices_[id], MinCut::kInfinite);
    if (worlds_.of(id) == kOuter) graph.connect(vertices_[id], sink, MinCut::kInfinite);
  }

  std::int64_t cost_of(ValueId id) {
    const Value& value = draft_.value(id);
    const Permutation other = worlds_.of(id) == kInner ? inward_.inverse() : inward_;
    if (moves_nothing(other, value)) return 1;  // nothing but a node
    return 16 + static_cast<std::int64_t>(bytes_of(value));
  }

  // ---- the graph with what was chosen ------------------------------------------------------------------------

  // The order in which a value stands, or is wanted, against its sizes in the graph.
  [[nodiscard]] Permutation order(ValueId id, bool inner) {
    const World world = worlds_.of(id);
    if (world == kNone || !has_rank(id) || (world == kInner) == inner) return Permutation::identity(rank(id));
    return inner ? inward_ : inward_.inverse();
  }
  [[nodiscard]] int rank(ValueId id) const { return draft_.value(id).shape.rank; }

  // The value in that order: itself, or what a Transpose makes of it.
  ValueId in_order(ValueId id, bool inner, const std::vector<std::int32_t>& sources = {}) {
    if (vertices_[id] == 0 || inner_[id] == inner) return resolve(id);
    const auto key = std::make_pair(id, inner);
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    const Permutation change = order(id, inner_[id]).inverse().then(order(id, inner));
    const Permutation wanted = order(id, inner);
    const Value value = draft_.value(id);
    const ValueId out = draft_.add_value(wanted.apply(value.shape), value.dtype, wanted.apply_bits(value.dynamic),
                                         wanted.apply(value.quantization));
    nodes_.push_back(draft_.make_transpose(resolve(id), change, out));
    nodes_.back().sources = sources;
    made_.emplace(key, out);
    return out;
  }

  // Where the value of a Transpose that fell away stands now.
  ValueId resolve(ValueId id) {
    while (id < same_as_.size() && same_as_[id] != kNoValue) id = same_as_[id];
    return id;
  }

  void rewrite() {
    const std::size_t count = draft_.graph.values.size();
    same_as_.assign(count, kNoValue);
    std::vector<Node> old = std::move(draft_.graph.nodes);
    for (std::size_t n = 0; n < old.size(); ++n) rewrite_node(std::move(old[n]), roles_[n]);
    draft_.graph.nodes = std::move(nodes_);
    std::vector<Permutation> stored;
    for (ValueId id = 0; id < count; ++id) stored.push_back(order(id, inner_[id]));
    for (ValueId id = 0; id < count; ++id) {
      if (same_as_[id] != kNoValue || stored[id].is_identity()) continue;
      Value& value = draft_.value(id);
      value.shape = stored[id].apply(value.shape);
      value.quantization = stored[id].apply(value.quantization);
      value.dynamic = stored[id].apply_bits(value.dynamic);
      draft_.move_taps(id, id, stored[id]);
    }
    for (ValueId id = 0; id < count; ++id) {
      if (same_as_[id] != kNoValue) draft_.move_taps(id, resolve(id), stored[id]);
    }
    draft_.index();
  }

  void rewrite_node(Node&& node, Role role) {
    const ValueId out = node.outputs[0];
    switch (role) {
      case Role::Fixed: {
        const auto native = [&](ValueId& id) {
          if (id != kNoValue) id = in_order(id, worlds_.of(id) == kInner);
        };
        std::ranges::for_each(node.inputs, native);
        std::ranges::for_each(node.post_inputs, native);
        break;
      }
      case Role::InputOnly: {
        const ValueId in = node.inputs[0];
        permute_attributes(node, order(in, inner_[in]), rank(in));
        node.inputs[0] = resolve(in);
        break;
      }
      case Role::Agnostic:
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          if (follows_order(draft_, node, i)) node.inputs[i] = in_order(node.inputs[i], inner_[out]);
        }
        permute_attributes(node, order(out, inner_[out]), rank(out));
        break;
      case Role::Transpose: {
        const ValueId in = node.inputs[0];
        if (draft_.value(out).kind == ValueKind::Temporary) {
          same_as_[out] = in_order(in, inner_[out], node.sources);
          return;
        }
        const Permutation change =
            order(in, inner_[in]).inverse().then(Permutation::of(node, inward_.rank)).then(order(out, inner_[out]));
        node.inputs[0] = resolve(in);
        std::copy_n(change.at, kMaxRank, node.attributes.permutation);
        break;
      }
    }
    nodes_.push_back(std::move(node));
  }

  Draft& draft_;
  Permutation inward_;
  Worlds worlds_;
  std::vector<Role> roles_;
  std::vector<MinCut::Vertex> vertices_;  // 0: takes no part
  std::vector<bool> inner_;               // stored in the order of the inner world
  std::vector<Node> nodes_;
  std::vector<ValueId> same_as_;
  std::map<std::pair<ValueId, bool>, ValueId> made_;
};

// Operands of fewer dimensions get leading ones, so that all of a node's operands are permuted alike.
void equalize_ranks(Draft& draft, int rank) {
  std::vector<Node> nodes;
  for (Node& node : draft.graph.nodes) {
    if (node.op == Op::Pointwise && draft.value(node.outputs[0]).shape.rank == rank) {
      for (ValueId& id : node.inputs) {
        const Value value = draft.value(id);
        const int more = rank - value.shape.rank;
        if (more == 0 || (value.shape.numel() == 1 && value.dynamic == 0)) continue;
        Shape shape;
        shape.rank = static_cast<std::uint8_t>(rank);
        Node reshape;
        reshape.op = Op::Reshape;
        reshape.inputs = {id};
        reshape.attributes.rank = shape.rank;
        for (int d = 0; d < rank; ++d) {
          shape.sizes[d] = d < more ? 1 : value.shape.sizes[d - more];
          reshape.attributes.sizes[d] = {.value = d < more ? 1 : 0, .from_input = static_cast<std::int8_t>(d - more)};
          if (d < more) reshape.attributes.sizes[d].from_input = -1;
        }
        id = draft.add_value(shape, value.dtype, static_cast<std::uint8_t>(value.dynamic << more), value.quantization);
        if (value.kind == ValueKind::Constant) {
          draft.value(id).kind = ValueKind::Constant;
          draft.value(id).data = value.data;
          continue;
        }
        reshape.outputs = {id};
        nodes.push_back(std::move(reshape));
      }
    }
    nodes.push_back(std::move(node));
  }
  draft.graph.nodes = std::move(nodes);
  draft.index();
}

}  // namespace

void assign_layout(Draft& draft) {
  // The permutations that occur most often first: each is solved for the whole graph.
  constexpr std::size_t kMostKinds = 6;
  std::vector<std::pair<Permutation, int>> kinds;
  for (const Node& node : draft.graph.nodes) {
    if (node.op != Op::Transpose) continue;
    const Permutation permutation = Permutation::of(node, draft.value(node.inputs[0]).shape.rank);
    const auto found = std::ranges::find_if(
        kinds, [&](const auto& kind) { return kind.first == permutation || kind.first == permutation.inverse(); });
    if (found == kinds.end()) {
      kinds.emplace_back(permutation, 1);
    } else {
      ++found->second;
    }
  }
  std::ranges::stable_sort(kinds, [](const auto& a, const auto& b) { return a.second > b.second; });
  if (kinds.size() > kMostKinds) kinds.resize(kMostKinds);
  for (const auto& [permutation, count] : kinds) {
    if (permutation.is_identity()) continue;
    equalize_ranks(draft, permutation.rank);
    Layout(draft, permutation).run();
  }
}

}  // namespace wb::engine
