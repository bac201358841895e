#include "engine/passes/draft.h"

#include <algorithm>
#include <unordered_map>

namespace wb::engine {

Permutation Permutation::identity(int rank) {
  Permutation result;
  result.rank = static_cast<std::uint8_t>(rank);
  for (int d = 0; d < rank; ++d) result.at[d] = static_cast<std::uint8_t>(d);
  return result;
}

Permutation Permutation::of(const Node& transpose, int rank) {
  Permutation result = identity(rank);
  for (int d = 0; d < rank; ++d) result.at[d] = transpose.attributes.permutation[d];
  return result;
}

Permutation Permutation::inverse() const {
  Permutation result = identity(rank);
  for (int d = 0; d < rank; ++d) result.at[at[d]] = static_cast<std::uint8_t>(d);
  return result;
}

Permutation Permutation::then(const Permutation& next) const {
  Permutation result = next;
  for (int d = 0; d < rank; ++d) result.at[d] = at[next.at[d]];
  return result;
}

bool Permutation::is_identity() const { return *this == identity(rank); }

Shape Permutation::apply(const Shape& shape) const {
  Shape result = shape;
  for (int d = 0; d < rank; ++d) result.sizes[d] = shape.sizes[at[d]];
  return result;
}

Quantization Permutation::apply(const Quantization& quantization) const {
  Quantization result = quantization;
  if (quantization.kind == Quantization::Kind::PerChannel) result.axis = inverse().at[quantization.axis];
  return result;
}

std::uint8_t Permutation::apply_bits(std::uint8_t bits) const {
  std::uint8_t result = 0;
  for (int d = 0; d < rank; ++d) result = static_cast<std::uint8_t>(result | (bits >> at[d] & 1U) << d);
  return result;
}

bool Permutation::operator==(const Permutation& other) const {
  return rank == other.rank && std::equal(at, at + rank, other.at);
}

namespace {

// The value of a source is what the last of its nodes gives; steps of a program may have sources of their own.
std::vector<Tap> taps_of(const Graph& graph) {
  std::vector<Tap> taps;
  std::unordered_map<std::int32_t, std::uint32_t> last;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::int32_t source : graph.nodes[n].sources) last[source] = n;
  }
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::uint32_t k = 0; k < node.sources.size(); ++k) {
      if (node.sources[k] < 0 || last[node.sources[k]] != n) continue;
      const bool whole = k + 1 == node.sources.size();
      const auto after = std::ranges::find_if(node.post, [&](const PointwiseStep& step) { return step.source > k; });
      const auto count = static_cast<std::uint32_t>(after - node.post.begin());
      if (!whole && (after == node.post.end() || (count == 0 && node.op == Op::Pointwise))) continue;
      for (std::uint32_t i = 0; i < (whole ? node.outputs.size() : 1); ++i) {
        if (node.outputs[i] == kNoValue) continue;
        const Permutation order = Permutation::identity(graph.values[node.outputs[i]].shape.rank);
        Tap tap;
        tap.source = node.sources[k];
        tap.output = i;
        tap.value = node.outputs[i];
        tap.numbers = graph.values[tap.value].quantization.present() && node.op != Op::Quantize;
        tap.post_count = whole ? Tap::kWhole : count;
        tap.rank = order.rank;
        std::copy_n(order.at, kMaxRank, tap.order);
        taps.push_back(tap);
      }
    }
  }
  return taps;
}

}  // namespace

Draft::Draft(const Reporter& report, Graph& graph, Owned& owned)
    : graph(graph), report(report), taps(taps_of(graph)), owned_(owned) {
  index();
}

void Draft::index() {
  nodes_ = graph.nodes.data();
  producers_.assign(graph.values.size(), kNone);
  readers_.assign(graph.values.size(), 0);
  std::vector<std::uint32_t> reader(graph.values.size(), kNone);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const auto read = [&](ValueId id) {
      if (id == kNoValue || reader[id] == n) return;
      reader[id] = n;
      ++readers_[id];
    };
    for (const ValueId id : graph.nodes[n].inputs) read(id);
    for (const ValueId id : graph.nodes[n].post_inputs) read(id);
    for (const ValueId id : graph.nodes[n].outputs) {
      if (id != kNoValue) producers_[id] = n;
    }
  }
}

ValueId Draft::add_value(const Shape& shape, ScalarType dtype, std::uint8_t dynamic, const Quantization& quantization) {
  Value value;
  value.quantization = quantization;
  value.shape = shape;
  value.dtype = dtype;
  value.dynamic = dynamic;
  graph.values.push_back(value);
  return static_cast<ValueId>(graph.values.size() - 1);
}

ValueId Draft::add_like(const Value& value) {
  return add_value(value.shape, value.dtype, value.dynamic, value.quantization);
}

Node Draft::make_transpose(ValueId x, const Permutation& permutation, ValueId out) {
  const Value from = value(x);
  Node node;
  node.op = Op::Transpose;
  node.inputs = {x};
  if (out == kNoValue) {
    out = add_value(permutation.apply(from.shape), from.dtype, permutation.apply_bits(from.dynamic),
                    permutation.apply(from.quantization));
  }
  node.outputs = {out};
  std::copy_n(permutation.at, kMaxRank, node.attributes.permutation);
  return node;
}

void Draft::sweep() {
  std::erase_if(graph.nodes, [](const Node& node) { return node.outputs.empty(); });
}

void Draft::move_taps(ValueId from, ValueId to, const Permutation& memory) {
  for (Tap& tap : taps) {
    if (tap.value != from) continue;
    tap.value = to;
    if (tap.reshaped || tap.rank != memory.rank) {
      if (!memory.is_identity()) tap.value = kNoValue;  // it can't be told in its own dimensions any more
      continue;
    }
    std::uint8_t order[kMaxRank];
    std::copy_n(tap.order, kMaxRank, order);
    for (int d = 0; d < tap.rank; ++d) tap.order[d] = order[memory.at[d]];
  }
  std::erase_if(taps, [](const Tap& tap) { return tap.value == kNoValue; });
}

void Draft::move_taps_reshaped(ValueId from, ValueId to) {
  const Value value = graph.values[from];
  for (Tap& tap : taps) {
    if (tap.value != from) continue;
    tap.value = to;
    if (value.dynamic != 0) {
      // Of a matrix, the number of rows follows from that of elements.
      if (tap.rank != 2 || tap.order[0] != 0) tap.value = kNoValue;
    } else if (!tap.reshaped) {
      tap.reshaped = true;
      tap.shape = value.shape;
    }
  }
  std::erase_if(taps, [](const Tap& tap) { return tap.value == kNoValue; });
}

void Draft::move_taps_of_numbers(ValueId from, ValueId to) {
  for (Tap& tap : taps) {
    if (tap.value != from || tap.post_count != Tap::kWhole) continue;
    tap.value = to;
    tap.numbers = true;
  }
}

void Draft::shift_taps(ValueId out, ValueId between, std::uint32_t steps) {
  for (Tap& tap : taps) {
    if (tap.value == out && tap.post_count != Tap::kWhole) tap.post_count += steps;
  }
  for (Tap& tap : taps) {
    if (tap.value != between) continue;
    tap.value = out;
    if (tap.post_count == Tap::kWhole) tap.post_count = steps;
  }
}

void Draft::replace(ValueId from, ValueId to, const Permutation& memory) {
  for (Node& node : graph.nodes) {
    std::ranges::replace(node.inputs, from, to);
    std::ranges::replace(node.post_inputs, from, to);
  }
  move_taps(from, to, memory);
}

bool same_quantization(const Quantization& a, const Quantization& b) {
  if (a.kind != b.kind || a.bits != b.bits) return false;
  switch (a.kind) {
    case Quantization::Kind::None: return true;
    case Quantization::Kind::PerTensor: return a.scale == b.scale && a.zero_point == b.zero_point;
    case Quantization::Kind::PerChannel:
      return a.axis == b.axis && a.scales == b.scales && a.zero_points == b.zero_points && a.zero_point == b.zero_point;
    case Quantization::Kind::PerGroup:
      return a.group == b.group && a.scales == b.scales && a.zero_point == b.zero_point;
    case Quantization::Kind::PerRow: return false;
  }
  return false;
}

std::size_t bytes_of(const Value& value) {
  const auto numel = static_cast<std::size_t>(value.shape.numel());
  const std::size_t columns =
      value.shape.rank == 0 ? 1 : static_cast<std::size_t>(value.shape.sizes[value.shape.rank - 1]);
  const std::size_t rows = columns == 0 ? 0 : numel / columns;
  if (value.quantization.bits == 4) return rows * ((columns + 1) / 2);
  const std::size_t bytes = numel * element_size(value.dtype);
  if (value.quantization.kind != Quantization::Kind::PerRow) return bytes;
  return (bytes + 63) / 64 * 64 + rows * sizeof(RowQuantization);
}

}  // namespace wb::engine
