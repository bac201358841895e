// Copies of short runs of bytes without a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/simd.h"

namespace wb::engine::WB_ISA {

[[gnu::always_inline]] inline void copy_run(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 1024) {
    std::memcpy(to, from, bytes);
    return;
  }
  using kernels::WB_ISA::kVectorBytes;
  constexpr std::size_t kStep = kVectorBytes;
  if (bytes >= kStep) {
    using kernels::WB_ISA::load;
    using kernels::WB_ISA::store;
    const auto copy = [&](std::size_t at) {
      store(reinterpret_cast<std::int8_t*>(to + at), load(reinterpret_cast<const std::int8_t*>(from + at)));
    };
    std::size_t at = 0;
    for (; at + kStep <= bytes; at += kStep) copy(at);
    if (at < bytes) copy(bytes - kStep);  // the last vector once more, up to the end
    return;
  }
  if (bytes >= 8) {
    std::size_t at = 0;
    for (; at + 8 <= bytes; at += 8) std::memcpy(to + at, from + at, 8);
    std::memcpy(to + bytes - 8, from + bytes - 8, 8);
    return;
  }
  if (bytes >= 4) {
    std::memcpy(to, from, 4);
    std::memcpy(to + bytes - 4, from + bytes - 4, 4);
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

// `count` copies of an element of 1, 2, 4 or 8 bytes.
inline void fill_run(std::byte* to, const std::byte* element, std::size_t size, std::int64_t count) {
  const auto fill = [&]<typename T>(T value) {
    std::memcpy(&value, element, sizeof(T));
    T* p = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < count; ++i) p[i] = value;
  };
  switch (size) {
    case 1: return fill(std::uint8_t{});
    case 2: return fill(std::uint16_t{});
    case 4: return fill(std::uint32_t{});
    default: return fill(std::uint64_t{});
  }
}

}  // namespace wb::engine::WB_ISA
