#include "backends/xnnpack/blob.h"

#include <cstring>
#include <string>
#include <string_view>

namespace wb::xnnpack {
namespace {

using ull = unsigned long long;

constexpr std::size_t kHeaderSize = 30;
constexpr std::size_t kMagicOffset = 4;
constexpr std::size_t kAlignment = 8;  // the largest scalar of the schema
constexpr std::uint64_t kElsewhere = 0xffffffffffffffffU;

template <typename T>
T read(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool is_aligned(const void* data, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

// The bytes themselves, or a copy in memory of the method.
Result<std::span<const std::byte>> aligned(const BackendInitContext& context, std::span<const std::byte> bytes,
                                           std::size_t alignment) {
  if (is_aligned(bytes.data(), alignment)) return bytes;
  void* copy = context.allocate(bytes.size(), 64);
  if (copy == nullptr) return context.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes", bytes.size());
  std::memcpy(copy, bytes.data(), bytes.size());
  return std::span<const std::byte>{static_cast<const std::byte*>(copy), bytes.size()};
}

// A text of the blob for a message: what is no ASCII stands as "?".
std::string printable(std::string_view text) {
  std::string shown(text.substr(0, 80));
  for (char& c : shown) c = c >= 32 && c < 127 ? c : '?';
  return shown;
}

struct Sections {
  std::span<const std::byte> flatbuffer, constants;
  bool has_header = false;
};

Result<Sections> split(const BackendInitContext& context, std::span<const std::byte> blob) {
  if (blob.size() < kHeaderSize) {
    return context.fail(Error::InvalidProgram, "the blob has %zu bytes: expected at least the header's %zu",
                        blob.size(), kHeaderSize);
  }
  if (std::memcmp(blob.data() + kMagicOffset, "XH00", 4) != 0) return Sections{blob, {}, false};
  const auto length = read<std::uint16_t>(blob, 8);
  const std::uint64_t offset = read<std::uint32_t>(blob, 10);
  const std::uint64_t size = read<std::uint32_t>(blob, 14);
  const std::uint64_t constant_offset = read<std::uint32_t>(blob, 18);
  const auto constant_size = read<std::uint64_t>(blob, 22);
  if (length < kHeaderSize) {
    return context.fail(Error::InvalidProgram, "the header XH00: expected a length of at least %zu, found %u",
                        kHeaderSize, length);
  }
  if (offset < length || offset > blob.size() || size > blob.size() - offset) {
    return context.fail(Error::InvalidProgram, "the header XH00: a graph of %llu bytes at %llu in a blob of %zu",
                        static_cast<ull>(size), static_cast<ull>(offset), blob.size());
  }
  if (constant_offset < offset + size || constant_offset > blob.size() ||
      constant_size > blob.size() - constant_offset) {
    return context.fail(Error::InvalidProgram,
                        "the header XH00: %llu bytes of constants at %llu, behind a graph that ends at %llu, in %zu",
                        static_cast<ull>(constant_size), static_cast<ull>(constant_offset),
                        static_cast<ull>(offset + size), blob.size());
  }
  return Sections{blob.subspan(offset, size), blob.subspan(constant_offset, constant_size), true};
}

Result<std::span<const std::byte>> constant_in_flatbuffer(const BackendInitContext& context, const Blob& blob,
                                                          std::uint32_t index) {
  const auto* buffers = blob.graph->constant_buffer();
  if (index >= count(buffers) || buffers->Get(index)->storage() == nullptr) {
    return context.fail(Error::InvalidProgram, "constant %u: the graph has %u buffers, and this one has no data", index,
                        count(buffers));
  }
  const auto& storage = *buffers->Get(index)->storage();
  return std::span<const std::byte>{reinterpret_cast<const std::byte*>(storage.data()), storage.size()};
}

Result<std::span<const std::byte>> constant_by_place(const BackendInitContext& context, const Blob& blob,
                                                     std::uint32_t index) {
  const auto* places = blob.graph->constant_data();
  if (index >= count(places)) {
    return context.fail(Error::InvalidProgram, "constant %u: the graph has %u constants", index, count(places));
  }
  const fb::ConstantDataOffset& place = *places->Get(index);
  const std::string_view key = place.named_key() == nullptr
                                   ? std::string_view{}
                                   : std::string_view{place.named_key()->c_str(), place.named_key()->size()};
  if (!key.empty()) {
    auto named = context.named_data->get(key);
    if (!named.ok()) {
      return context.fail(Error::NotFound, "constant %u: no data named %s: load the program with its .ptd files", index,
                          printable(key).c_str());
    }
    if (named->size() < place.size()) {
      return context.fail(Error::InvalidProgram, "constant %u: expected %llu bytes named %s, found %zu", index,
                          static_cast<ull>(place.size()), printable(key).c_str(), named->size());
    }
    return named->first(static_cast<std::size_t>(place.size()));
  }
  if (place.offset() == kElsewhere) {
    return context.fail(Error::InvalidProgram, "constant %u: it has neither an offset nor a key", index);
  }
  if (place.offset() > blob.constants.size() || place.size() > blob.constants.size() - place.offset()) {
    return context.fail(Error::InvalidProgram, "constant %u: %llu bytes at %llu of %zu bytes of constants", index,
                        static_cast<ull>(place.size()), static_cast<ull>(place.offset()), blob.constants.size());
  }
  return blob.constants.subspan(static_cast<std::size_t>(place.offset()), static_cast<std::size_t>(place.size()));
}

}  // namespace

Result<Blob> open_blob(const BackendInitContext& context, std::span<const std::byte> bytes) {
  WB_ASSIGN(const Sections sections, split(context, bytes));
  if (sections.flatbuffer.size() < 8) {
    return context.fail(Error::InvalidProgram, "the graph has %zu bytes", sections.flatbuffer.size());
  }
  char identifier[5] = {};
  std::memcpy(identifier, sections.flatbuffer.data() + 4, 4);
  if (std::strcmp(identifier, "XN01") != 0 && std::strcmp(identifier, "XN00") != 0) {
    return context.fail(Error::DelegateInvalidCompatibility,
                        "expected a graph with the identifier XN01 or XN00, found '%s'", printable(identifier).c_str());
  }
  WB_ASSIGN(const auto flatbuffer, aligned(context, sections.flatbuffer, kAlignment));
  const auto* data = reinterpret_cast<const std::uint8_t*>(flatbuffer.data());
  flatbuffers::Verifier::Options options;
  options.max_depth = 16;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(flatbuffer.size() / 4 + 64);
  options.max_size = flatbuffer.size() + 1;
  flatbuffers::Verifier verifier(data, flatbuffer.size(), options);
  if (!verifier.VerifyBuffer<fb::Graph>(nullptr)) {
    return context.fail(Error::InvalidProgram,
                        "the graph's flatbuffer of %zu bytes is damaged: an offset or a size in it points outside",
                        flatbuffer.size());
  }
  const fb::Graph* graph = flatbuffers::GetRoot<fb::Graph>(data);
  const auto* version = graph->version();
  if (version != nullptr && std::strcmp(version->c_str(), "0") != 0) {
    return context.fail(Error::DelegateInvalidCompatibility, "expected a graph of version 0, found '%s'",
                        printable(version->string_view()).c_str());
  }
  return Blob{graph, sections.constants, sections.has_header};
}

Result<std::span<const std::byte>> find_constant(const BackendInitContext& context, const Blob& blob,
                                                 std::uint32_t index, std::uint64_t size, std::size_t alignment) {
  WB_ASSIGN(const auto bytes,
            blob.has_header ? constant_by_place(context, blob, index) : constant_in_flatbuffer(context, blob, index));
  if (bytes.size() < size) {
    return context.fail(Error::InvalidProgram, "constant %u: its value takes %llu bytes, found %zu", index,
                        static_cast<ull>(size), bytes.size());
  }
  return aligned(context, bytes.first(static_cast<std::size_t>(size)), alignment);
}

}  // namespace wb::xnnpack
