// The bytes of a program or data file: mapped from a file, or lent by the caller.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/error.h"

namespace wb {

class DataSource {
 public:
  DataSource() = default;
  DataSource(DataSource&& other) noexcept { *this = static_cast<DataSource&&>(other); }
  DataSource& operator=(DataSource&& other) noexcept;
  DataSource(const DataSource&) = delete;
  DataSource& operator=(const DataSource&) = delete;
  ~DataSource();

  // Maps a file. Pages are private, and writable only so that a program that writes to its constants does no harm.
  static Result<DataSource> map_file(const char* path, Diagnostic& diagnostic);
  // Uses the caller's memory, which must outlive the source; copied when it is not aligned to 16 bytes.
  static Result<DataSource> borrow(std::span<const std::byte> bytes, Diagnostic& diagnostic);

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Tells the system that a part is not needed soon. Its contents stay readable. Does nothing with bytes of others.
  void release(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
  bool owned_ = false;
};

}  // namespace wb
