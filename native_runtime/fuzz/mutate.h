// Damage for programs: what a broken disk does, and what somebody who knows the format does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace wb::fuzz {

// splitmix64 (Steele, Lea and Flood, 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // 0 .. bound - 1; 0 for a bound of 0.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }

 private:
  std::uint64_t state_;
};

// Changes a copy of a valid program (or data file). One call makes between one and a few changes: bytes cut off, bits
// flipped, words overwritten with numbers that often are at limits, and fields of the flatbuffer set to such numbers or
// to the values of other fields of their kind. The graphs of delegates that the runtime knows are part of it.
class Mutator {
 public:
  // `original` must be valid for field-aware changes to happen; it stays unchanged.
  explicit Mutator(std::vector<std::byte> original);

  [[nodiscard]] std::vector<std::byte> mutate(std::uint64_t seed) const;

 private:
  // Where a number stands in the file.
  struct Field {
    std::size_t offset;
    std::uint8_t width;
    std::uint8_t kind;
  };

  struct Range {
    std::size_t offset;
    std::size_t size;
  };

  void find_fields();
  // delegates.cc
  void add_delegate(std::string_view backend, std::span<const std::byte> blob);
  void add_xnnpack_graph(std::span<const std::byte> blob);
  void add_cpu_graph(std::span<const std::byte> blob);
  void add_table(const void* table);
  void add(const void* address, std::uint8_t width, std::uint8_t kind);
  template <typename T>
  void add_vector(const T* vector, std::uint8_t kind);
  template <typename Plan>
  void add_plan(const Plan& plan);
  [[nodiscard]] const Range& random_range(Random& random, std::size_t end) const;
  void change_field(std::vector<std::byte>& bytes, Random& random) const;
  void change_bytes(std::vector<std::byte>& bytes, Random& random) const;

  std::vector<std::byte> original_;
  std::vector<Range> structured_;  // flatbuffers and their headers: the rest is weights
  std::vector<Field> fields_;
};

template <typename T>
void Mutator::add_vector(const T* vector, std::uint8_t kind) {
  if (vector == nullptr) return;
  const auto width = static_cast<std::uint8_t>(sizeof(typename T::value_type));
  for (std::uint32_t i = 0; i < vector->size(); ++i) add(vector->Data() + std::size_t{i} * width, width, kind);
}

}  // namespace wb::fuzz
