#include "program/header.h"

#include <cstring>

namespace wb {
namespace {

constexpr std::size_t kHeaderOffset = 8;  // behind the root offset and the file identifier

template <typename T>
T read(std::span<const std::byte> file, std::size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

unsigned long long ull(std::uint64_t value) { return value; }

Error check(const ExtendedHeader& header, std::size_t file_size, Diagnostic& diagnostic) {
  if (header.flatbuffer_offset > file_size || header.flatbuffer_size > file_size - header.flatbuffer_offset) {
    diagnostic.add("extended header: the flatbuffer is said to take %llu bytes at %llu, the file has %zu",
                   ull(header.flatbuffer_size), ull(header.flatbuffer_offset), file_size);
    return Error::InvalidProgram;
  }
  if (header.segment_base > file_size || header.segment_size > file_size - header.segment_base) {
    diagnostic.add("extended header: segments are said to take %llu bytes at %llu, the file has %zu",
                   ull(header.segment_size), ull(header.segment_base), file_size);
    return Error::InvalidProgram;
  }
  if (header.segment_base != 0 && header.segment_base < header.flatbuffer_offset + header.flatbuffer_size) {
    diagnostic.add("extended header: segments begin at %llu, inside the flatbuffer that ends at %llu",
                   ull(header.segment_base), ull(header.flatbuffer_offset + header.flatbuffer_size));
    return Error::InvalidProgram;
  }
  return Error::Ok;
}

}  // namespace

Result<ExtendedHeader> read_program_header(std::span<const std::byte> file, Diagnostic& diagnostic) {
  ExtendedHeader header;
  header.flatbuffer_size = file.size();
  if (file.size() < kHeaderOffset + 24 || std::memcmp(file.data() + kHeaderOffset, "eh00", 4) != 0) return header;
  const auto length = read<std::uint32_t>(file, kHeaderOffset + 4);
  if (length < 24 || length > file.size() - kHeaderOffset) {
    diagnostic.add("extended header: expected a length of at least 24 bytes, found %u", length);
    return Error::InvalidProgram;
  }
  header.present = true;
  header.flatbuffer_size = read<std::uint64_t>(file, kHeaderOffset + 8);
  header.segment_base = read<std::uint64_t>(file, kHeaderOffset + 16);
  const std::uint64_t rest = header.segment_base <= file.size() ? file.size() - header.segment_base : 0;
  header.segment_size = length >= 32 ? read<std::uint64_t>(file, kHeaderOffset + 24) : rest;
  WB_TRY(check(header, file.size(), diagnostic));
  return header;
}

Result<ExtendedHeader> read_data_header(std::span<const std::byte> file, Diagnostic& diagnostic) {
  constexpr std::uint32_t kLength = 40;
  if (file.size() < kHeaderOffset + kLength || std::memcmp(file.data() + kHeaderOffset, "FH01", 4) != 0) {
    diagnostic.add("not a data file: no header FH01 at byte %zu", kHeaderOffset);
    return Error::InvalidExternalData;
  }
  const auto length = read<std::uint32_t>(file, kHeaderOffset + 4);
  if (length < kLength) {
    diagnostic.add("header of the data file: expected %u bytes, found %u", kLength, length);
    return Error::InvalidExternalData;
  }
  ExtendedHeader header;
  header.present = true;
  header.flatbuffer_offset = read<std::uint64_t>(file, kHeaderOffset + 8);
  header.flatbuffer_size = read<std::uint64_t>(file, kHeaderOffset + 16);
  header.segment_base = read<std::uint64_t>(file, kHeaderOffset + 24);
  header.segment_size = read<std::uint64_t>(file, kHeaderOffset + 32);
  if (check(header, file.size(), diagnostic) != Error::Ok) return Error::InvalidExternalData;
  return header;
}

}  // namespace wb
