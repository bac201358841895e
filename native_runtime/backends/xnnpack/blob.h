// The wire format of the delegate `XnnpackBackend`: where its graph and its constants stand. Nothing below the graph's
// flatbuffer has been checked yet, except that its tables, vectors and texts lie inside the blob.
//
//   "XH00" header (optional), flatbuffer "XN01" or "XN00" (schema/xnnpack.fbs), constants
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend.h"
#include "generated/xnnpack_generated.h"

namespace wb::xnnpack {

namespace fb = ::workbench::xnnpack;

inline constexpr std::uint32_t kNoId = 0xffffffffU;  // "none" in the place of an id

struct Blob {
  const fb::Graph* graph = nullptr;
  // What stands behind the flatbuffer. Without a header there is none: constants are inside of the flatbuffer.
  std::span<const std::byte> constants;
  bool has_header = false;
};

// Checks header, identifier, version and flatbuffer. The blob is read in place; one that is not aligned as a flatbuffer
// has to be is copied to memory of the method.
[[nodiscard]] Result<Blob> open_blob(const BackendInitContext& context, std::span<const std::byte> bytes);

// The bytes of constant `index` (not 0, which means "no constant"): at least `size`, aligned to `alignment`, in place
// if they are aligned there. They live as long as the method.
[[nodiscard]] Result<std::span<const std::byte>> find_constant(const BackendInitContext& context, const Blob& blob,
                                                               std::uint32_t index, std::uint64_t size,
                                                               std::size_t alignment);

template <typename T>
[[nodiscard]] std::uint32_t count(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

}  // namespace wb::xnnpack
