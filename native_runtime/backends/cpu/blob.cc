#include "backends/cpu/blob.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace wb::cpu {
namespace {

using ull = unsigned long long;

constexpr std::size_t kAlignment = 16;  // of the inline data of constants
constexpr std::uint32_t kMaxArguments = 1U << 20;
// Tables that one blob may hold; the verifier counts them.
constexpr std::uint32_t kMaxTables = 1U << 22;

template <typename T>
std::uint32_t size_of(const T* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// The blob where a flatbuffer may stand: itself, or a copy at an aligned address.
Result<std::span<const std::byte>> aligned(const BackendInitContext& context, std::span<const std::byte> bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0) return bytes;
  void* copy = context.allocate(bytes.size(), kAlignment);
  if (copy == nullptr)
    return context.fail(Error::MemoryAllocationFailed, "no memory for a blob of %zu bytes", bytes.size());
  std::memcpy(copy, bytes.data(), bytes.size());
  return std::span<const std::byte>{static_cast<const std::byte*>(copy), bytes.size()};
}

Result<const fb::Graph*> verified(const BackendInitContext& context, std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (bytes.size() < 8 || !fb::GraphBufferHasIdentifier(data)) {
    return context.fail(Error::DelegateInvalidCompatibility,
                        "the blob of %zu bytes is no graph of this backend (identifier %s)", bytes.size(),
                        fb::GraphIdentifier());
  }
  flatbuffers::Verifier::Options options;
  options.max_tables = kMaxTables;
  flatbuffers::Verifier verifier(data, bytes.size(), options);
  if (!fb::VerifyGraphBuffer(verifier)) {
    return context.fail(Error::InvalidProgram, "the blob of %zu bytes is damaged: an offset leads out of it",
                        bytes.size());
  }
  const fb::Graph* graph = fb::GetGraph(data);
  if (graph->version() > kVersion) {
    return context.fail(Error::DelegateInvalidCompatibility, "expected a graph of version %u at most, found %u",
                        kVersion, graph->version());
  }
  return graph;
}

Error read_shape(const BackendInitContext& context, const fb::Value& from, std::uint32_t index, engine::Value& to) {
  const auto* sizes = from.sizes();
  if (size_of(sizes) > engine::kMaxRank) {
    return context.fail(Error::InvalidProgram, "value %u: expected rank of at most %d, found %u", index,
                        engine::kMaxRank, size_of(sizes));
  }
  if (!is_placed(sizes)) {
    return context.fail(Error::InvalidProgram, "value %u: its sizes are not aligned to their elements", index);
  }
  to.shape.rank = static_cast<std::uint8_t>(size_of(sizes));
  std::int64_t count = 1;
  for (std::uint32_t d = 0; d < size_of(sizes); ++d) {
    const std::int64_t size = sizes->Get(d);
    if (size < 0 || size > engine::kMaxElements || (size != 0 && count > engine::kMaxElements / size)) {
      return context.fail(Error::InvalidProgram, "value %u: size %lld in dimension %u is out of range", index,
                          static_cast<long long>(size), d);
    }
    to.shape.sizes[d] = size;
    count *= size;
  }
  return Error::Ok;
}

// A key as it may stand in a message: cut to the length of a SHA-256, without bytes that are no text.
constexpr std::size_t kKeySize = 64;
void printable(std::string_view key, char* text) {
  for (std::size_t i = 0; i < std::min(key.size(), kKeySize); ++i) {
    text[i] = key[i] >= ' ' && key[i] <= '~' ? key[i] : '?';
  }
}

Error read_data(const BackendInitContext& context, const fb::Value& from, std::uint32_t index, engine::Value& to) {
  const std::size_t item = element_size(to.dtype);
  const std::size_t bytes = engine::bytes_of(to);
  std::span<const std::byte> data;
  if (from.key() != nullptr) {
    const Result<std::span<const std::byte>> found = context.named_data->get(from.key()->string_view());
    if (!found.ok()) {
      char key[kKeySize + 1] = {};
      printable(from.key()->string_view(), key);
      return context.fail(found.error(), "constant %u: the program has no data named %s", index, key);
    }
    data = found.get();
  } else if (from.data() != nullptr) {
    data = {reinterpret_cast<const std::byte*>(from.data()->data()), from.data()->size()};
  }
  if (data.size() < bytes) {
    return context.fail(Error::InvalidProgram, "constant %u: expected %zu bytes, found %zu", index, bytes, data.size());
  }
  if (reinterpret_cast<std::uintptr_t>(data.data()) % item != 0) {
    return context.fail(Error::InvalidProgram, "constant %u: its data is not aligned to its elements of %zu bytes",
                        index, item);
  }
  to.data = data.data();
  return Error::Ok;
}

Error read_value(const BackendInitContext& context, const fb::Value& from, std::uint32_t index, engine::Value& to) {
  if (from.kind() > fb::ValueKind::MAX) {
    return context.fail(Error::InvalidProgram, "value %u is of kind %u", index, static_cast<unsigned>(from.kind()));
  }
  to.kind = static_cast<engine::ValueKind>(from.kind());
  to.dtype = static_cast<ScalarType>(from.dtype());
  if (!is_valid(to.dtype)) {
    return context.fail(Error::InvalidProgram, "value %u has elements of the unknown type %d", index,
                        static_cast<int>(from.dtype()));
  }
  WB_TRY(read_shape(context, from, index, to));
  to.dynamic = from.dynamic();
  if (to.dynamic >> to.shape.rank != 0) {
    return context.fail(Error::InvalidProgram, "value %u: dynamic dimensions 0x%x of a tensor of rank %d", index,
                        to.dynamic, to.shape.rank);
  }
  WB_TRY(read_quantization(context, from, index, to));
  return to.kind == engine::ValueKind::Constant ? read_data(context, from, index, to) : Error::Ok;
}

// Numbers the values that are arguments from 0, in the order of the arguments, and notes which argument each one is.
Error number_arguments(const BackendInitContext& context, const fb::Graph& from, engine::ValueKind kind,
                       std::uint32_t arguments, Blob& blob) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;  // argument, value
  for (std::uint32_t v = 0; v < blob.graph.values.size(); ++v) {
    if (blob.graph.values[v].kind == kind) found.emplace_back(from.values()->Get(v)->external(), v);
  }
  std::sort(found.begin(), found.end());
  const bool output = kind == engine::ValueKind::Output;
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    const auto [argument, value] = found[i];
    if (argument >= arguments || (i != 0 && argument == found[i - 1].first)) {
      return context.fail(Error::InvalidProgram, "value %u is %s %u of %u, which is %s", value,
                          output ? "output" : "input", argument, arguments,
                          argument >= arguments ? "not there" : "another value too");
    }
    blob.graph.values[value].external = i;
    blob.arguments.push_back(argument + (output ? blob.inputs : 0));
  }
  if (output && found.size() != arguments) {
    return context.fail(Error::InvalidProgram, "%zu values for %u outputs", found.size(), arguments);
  }
  (output ? blob.graph.outputs : blob.graph.inputs) = static_cast<std::uint32_t>(found.size());
  return Error::Ok;
}

}  // namespace

Result<Blob> read_blob(BackendInitContext& context, std::span<const std::byte> bytes) {
  WB_ASSIGN(const std::span<const std::byte> stable, aligned(context, bytes));
  WB_ASSIGN(const fb::Graph* from, verified(context, stable));
  Blob blob;
  blob.inputs = from->inputs();
  blob.outputs = from->outputs();
  if (blob.inputs > kMaxArguments || blob.outputs > kMaxArguments) {
    return context.fail(Error::InvalidProgram, "a delegate call of %u inputs and %u outputs", blob.inputs,
                        blob.outputs);
  }
  blob.graph.values.resize(size_of(from->values()));
  for (std::uint32_t v = 0; v < blob.graph.values.size(); ++v) {
    const fb::Value& value = *from->values()->Get(v);
    WB_TRY(read_value(context, value, v, blob.graph.values[v]));
    blob.holds_data |=
        stable.data() == bytes.data() && value.kind() == fb::ValueKind::Constant && value.key() == nullptr;
  }
  WB_TRY(number_arguments(context, *from, engine::ValueKind::Input, blob.inputs, blob));
  WB_TRY(number_arguments(context, *from, engine::ValueKind::Output, blob.outputs, blob));
  blob.graph.nodes.resize(size_of(from->nodes()));
  for (std::uint32_t n = 0; n < blob.graph.nodes.size(); ++n) {
    WB_TRY(read_node(context, *from->nodes()->Get(n), n, blob.graph.nodes[n]));
  }
  return blob;
}

}  // namespace wb::cpu
