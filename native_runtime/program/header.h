// The extended header that follows the identifier of a `.pte` or `.ptd` file, and says where segments begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/error.h"

namespace wb {

struct ExtendedHeader {
  bool present = false;
  std::uint64_t flatbuffer_offset = 0;  // bytes from the start of the file
  std::uint64_t flatbuffer_size = 0;    // the size of the flatbuffer; of the whole file without a header
  std::uint64_t segment_base = 0;       // bytes from the start of the file
  std::uint64_t segment_size = 0;  // of all segments together; the rest of the file where the header has no such field
};

// Reads and checks the header of a program ("eh00") against the size of the file.
Result<ExtendedHeader> read_program_header(std::span<const std::byte> file, Diagnostic& diagnostic);

// Reads and checks the header of a data file ("FH01").
Result<ExtendedHeader> read_data_header(std::span<const std::byte> file, Diagnostic& diagnostic);

}  // namespace wb
