// Damage for programs: what a broken disk does, and what somebody who knows the format does.
#pragma once

#include <cstddef>
#include <cstdint>
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
// to the values of other fields of their kind.
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

  void find_fields();
  void add(const void* address, std::uint8_t width, std::uint8_t kind);
  template <typename T>
  void add_vector(const T* vector, std::uint8_t kind);
  template <typename Plan>
  void add_plan(const Plan& plan);
  void change_field(std::vector<std::byte>& bytes, Random& random) const;
  void change_bytes(std::vector<std::byte>& bytes, Random& random) const;

  std::vector<std::byte> original_;
  std::size_t structured_ = 0;  // bytes of the flatbuffer and its header: the rest is weights
  std::vector<Field> fields_;
};

}  // namespace wb::fuzz
