// Where temporaries and scratch memory stand in the arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wb::engine {

// A piece of memory that is in use from the step `first` to the step `last`, both included.
struct Buffer {
  std::size_t bytes = 0;
  std::uint32_t first = 0, last = 0;
  std::size_t offset = 0;  // result, a multiple of kAlignment
};

inline constexpr std::size_t kAlignment = 64;

// Places the buffers so that no two that are in use at once overlap: the biggest first, each into the smallest gap that
// holds it ("greedy by size", Pisarchyk & Lee, Efficient Memory Management for Deep Neural Net Inference, 2020).
// Returns the bytes that all of them take.
std::size_t plan_memory(std::span<Buffer> buffers);

}  // namespace wb::engine
