// A loaded program: the verified flatbuffer, its segments and its named data. Everything that a method reads from here
// has been checked once, at load: indices, sizes, offsets and types can be relied on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/backend.h"
#include "core/error.h"
#include "generated/program_generated.h"
#include "program/header.h"
#include "program/source.h"

namespace wb {

namespace fb = ::workbench::program;

class Program final : public NamedData {
 public:
  // Maps a `.pte` file; no data is copied.
  static Result<std::unique_ptr<Program>> open(const char* path, Diagnostic& diagnostic);
  // Uses the caller's bytes, which must outlive the program.
  static Result<std::unique_ptr<Program>> from_bytes(std::span<const std::byte> bytes, Diagnostic& diagnostic);

  [[nodiscard]] const fb::Program& root() const { return *root_; }
  [[nodiscard]] std::size_t method_count() const;
  [[nodiscard]] const fb::ExecutionPlan* method(std::string_view name) const;
  [[nodiscard]] const fb::ExecutionPlan& method_at(std::size_t index) const;

  [[nodiscard]] std::size_t segment_count() const;
  [[nodiscard]] std::span<const std::byte> segment(std::uint32_t index) const;

  // Constant data, from its beginning to the end of its segment (or of its inline buffer).
  [[nodiscard]] std::span<const std::byte> constant(std::uint32_t data_buffer_idx) const;
  // Initial state of a mutable tensor, likewise.
  [[nodiscard]] std::span<const std::byte> mutable_data(std::uint64_t segments_idx,
                                                        std::uint32_t data_buffer_idx) const;
  // The blob of a delegate.
  [[nodiscard]] std::span<const std::byte> delegate_data(const fb::BackendDelegate& delegate) const;

  // NamedData: what the program itself stores by name.
  [[nodiscard]] Result<std::span<const std::byte>> get(std::string_view key) const override;
  void release(std::span<const std::byte> part) const override { source_.release(part); }
  [[nodiscard]] std::size_t named_count() const;
  [[nodiscard]] std::string_view named_key(std::size_t index) const;

  [[nodiscard]] const DataSource& source() const { return source_; }

 private:
  static Result<std::unique_ptr<Program>> load(DataSource source, Diagnostic& diagnostic);

  DataSource source_;
  ExtendedHeader header_;
  const fb::Program* root_ = nullptr;
};

[[nodiscard]] inline std::string_view view(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view{} : std::string_view{text->c_str(), text->size()};
}

// Number of entries of a vector that may be absent.
template <typename T>
[[nodiscard]] std::uint32_t count(const flatbuffers::Vector<T>* items) {
  return items == nullptr ? 0 : items->size();
}

// The verifier of flatbuffers does not check that the elements of a vector are aligned.
template <typename T>
[[nodiscard]] bool is_aligned(const flatbuffers::Vector<T>* items) {
  return items == nullptr || reinterpret_cast<std::uintptr_t>(items->Data()) % sizeof(T) == 0;
}

}  // namespace wb
