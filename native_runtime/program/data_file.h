// A `.ptd` file: named tensors and blobs outside a program.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "core/backend.h"
#include "core/error.h"
#include "generated/flat_tensor_generated.h"
#include "program/header.h"
#include "program/source.h"

namespace wb {

class DataFile final : public NamedData {
 public:
  // Maps a file; no data is copied.
  static Result<std::unique_ptr<DataFile>> open(const char* path, Diagnostic& diagnostic);
  // Uses the caller's bytes, which must outlive the object.
  static Result<std::unique_ptr<DataFile>> from_bytes(std::span<const std::byte> bytes, Diagnostic& diagnostic);

  [[nodiscard]] Result<std::span<const std::byte>> get(std::string_view key) const override;
  void release(std::span<const std::byte> part) const override { source_.release(part); }
  // Null for data that is no tensor, and for unknown keys.
  [[nodiscard]] const ::workbench::flat_tensor::TensorLayout* layout(std::string_view key) const;

  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::string_view key(std::size_t index) const;

 private:
  static Result<std::unique_ptr<DataFile>> load(DataSource source, Diagnostic& diagnostic);
  Error validate(Diagnostic& diagnostic) const;
  [[nodiscard]] const ::workbench::flat_tensor::NamedData* find(std::string_view key) const;

  DataSource source_;
  ExtendedHeader header_;
  const ::workbench::flat_tensor::FlatTensor* root_ = nullptr;
};

}  // namespace wb
