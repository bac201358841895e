// Does with a file all that the runtime does with one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wb::fuzz {

struct Limits {
  std::uint64_t instructions = 2000;              // of one execution
  std::uint64_t memory = std::uint64_t{1} << 28;  // bytes of one method
  std::uint64_t elements = std::uint64_t{1}
                           << 24;  // that the tensors of one instruction may have, as a bound on its time
};

enum class Outcome : std::uint8_t { Refused, NotLoaded, Failed, Executed };

// Loads the bytes, each method in them, and executes each with zeros for inputs. Whatever they hold, this returns.
Outcome try_program(std::span<const std::byte> bytes, const Limits& limits);

// Reads all that a data file holds.
Outcome try_data_file(std::span<const std::byte> bytes);

}  // namespace wb::fuzz
