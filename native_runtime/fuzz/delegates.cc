// Where the numbers of delegates' graphs stand.
#include <algorithm>
#include <cstring>

#include "backends/cpu/blob.h"
#include "backends/xnnpack/blob.h"
#include "fuzz/mutate.h"

namespace wb::fuzz {
namespace {

constexpr std::uint8_t kGraphNumber = 64;  // one kind for all, so that ids, sizes and flags get each other's values

template <typename T>
std::uint32_t length(const T* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// A graph that lies where it can be looked at in place: null otherwise.
template <typename Graph>
const Graph* graph_in(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (bytes.size() < 8 || reinterpret_cast<std::uintptr_t>(data) % 8 != 0) return nullptr;
  flatbuffers::Verifier verifier(data, bytes.size());
  return verifier.VerifyBuffer<Graph>(nullptr) ? flatbuffers::GetRoot<Graph>(data) : nullptr;
}

}  // namespace

// All that a table holds itself, whatever its schema: numbers, and the offsets of what stands elsewhere.
void Mutator::add_table(const void* table) {
  if (table == nullptr) return;
  const auto* data = static_cast<const std::uint8_t*>(table);
  const auto* vtable = static_cast<const flatbuffers::Table*>(table)->GetVTable();
  std::uint16_t bytes = 0, end = 0;
  std::memcpy(&bytes, vtable, sizeof bytes);
  std::memcpy(&end, vtable + 2, sizeof end);
  std::vector<std::uint16_t> starts;
  for (std::uint16_t at = 4; at + 2 <= bytes; at = static_cast<std::uint16_t>(at + 2)) {
    std::uint16_t start = 0;
    std::memcpy(&start, vtable + at, sizeof start);
    if (start != 0) starts.push_back(start);
  }
  starts.push_back(end);
  std::sort(starts.begin(), starts.end());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const int room = starts[i + 1] - starts[i];
    const int width = room >= 16 ? 4 : room >= 8 ? 8 : room >= 4 ? 4 : room >= 2 ? 2 : 1;
    for (int at = 0; at + width <= room; at += width) {
      add(data + starts[i] + at, static_cast<std::uint8_t>(width), kGraphNumber);
    }
  }
}

void Mutator::add_delegate(std::string_view backend, std::span<const std::byte> blob) {
  if (blob.data() < original_.data() || blob.data() + blob.size() > original_.data() + original_.size()) return;
  structured_.push_back({static_cast<std::size_t>(blob.data() - original_.data()), blob.size()});
  if (backend == "XnnpackBackend") add_xnnpack_graph(blob);
  if (backend == "CpuBackend") add_cpu_graph(blob);
}

void Mutator::add_xnnpack_graph(std::span<const std::byte> blob) {
  namespace fb = xnnpack::fb;
  std::uint32_t place[2] = {};
  if (blob.size() < 30 || std::memcmp(blob.data() + 4, "XH00", 4) != 0) return;
  std::memcpy(place, blob.data() + 10, sizeof place);
  if (place[0] > blob.size() || place[1] > blob.size() - place[0]) return;
  const auto* graph = graph_in<fb::Graph>(blob.subspan(place[0], place[1]));
  if (graph == nullptr) return;
  for (int field = 0; field < 5; ++field) add(blob.data() + 10 + 4 * field, 4, kGraphNumber);
  add_table(graph);
  for (std::uint32_t i = 0; i < length(graph->xvalues()); ++i) {
    const fb::Value& value = *graph->xvalues()->Get(i);
    add_table(&value);
    const fb::Tensor* tensor = value.xvalue_union_as_Tensor();
    if (tensor == nullptr) continue;
    add_table(tensor);
    add_vector(tensor->dims(), kGraphNumber);
  }
  for (std::uint32_t i = 0; i < length(graph->constant_data()); ++i) add_table(graph->constant_data()->Get(i));
  for (std::uint32_t i = 0; i < length(graph->xnodes()); ++i) {
    const fb::Node& node = *graph->xnodes()->Get(i);
    add_table(&node);
    add_table(node.xnode_union());
    add_table(node.output_min_max());
    if (const auto* it = node.xnode_union_as_StaticTranspose(); it != nullptr) add_vector(it->perm(), kGraphNumber);
    if (const auto* it = node.xnode_union_as_StaticReshape(); it != nullptr) add_vector(it->new_shape(), kGraphNumber);
    if (const auto* it = node.xnode_union_as_StaticSlice(); it != nullptr) {
      add_vector(it->offsets(), kGraphNumber);
      add_vector(it->sizes(), kGraphNumber);
    }
    if (const auto* it = node.xnode_union_as_StaticConstantPad(); it != nullptr) {
      add_vector(it->pre_paddings(), kGraphNumber);
      add_vector(it->post_paddings(), kGraphNumber);
    }
  }
}

void Mutator::add_cpu_graph(std::span<const std::byte> blob) {
  namespace fb = cpu::fb;
  const auto* graph = graph_in<fb::Graph>(blob);
  if (graph == nullptr) return;
  add_table(graph);
  for (std::uint32_t i = 0; i < length(graph->values()); ++i) {
    const fb::Value& value = *graph->values()->Get(i);
    add_table(&value);
    add_vector(value.sizes(), kGraphNumber);
  }
  for (std::uint32_t i = 0; i < length(graph->nodes()); ++i) {
    const fb::Node& node = *graph->nodes()->Get(i);
    add_table(&node);
    add_vector(node.inputs(), kGraphNumber);
    add_vector(node.outputs(), kGraphNumber);
    for (std::uint32_t s = 0; s < length(node.steps()); ++s) {
      const auto* step = reinterpret_cast<const std::uint8_t*>(node.steps()->Get(s));
      for (int at = 0; at < 4; ++at) add(step + at, 1, kGraphNumber);
      for (int at = 4; at < 12; at += 4) add(step + at, 4, kGraphNumber);
    }
    const fb::Attributes* attributes = node.attributes();
    if (attributes == nullptr) continue;
    add_table(attributes);
    add_vector(attributes->permutation(), kGraphNumber);
    add_vector(attributes->before(), kGraphNumber);
    add_vector(attributes->after(), kGraphNumber);
    if (attributes->sizes() == nullptr) continue;
    for (std::uint32_t s = 0; s < attributes->sizes()->size(); ++s) {
      const fb::SizeRule& rule = *attributes->sizes()->Get(s);
      add(&rule, 8, kGraphNumber);
      add(reinterpret_cast<const std::uint8_t*>(&rule) + 8, 1, kGraphNumber);
    }
  }
}

}  // namespace wb::fuzz
