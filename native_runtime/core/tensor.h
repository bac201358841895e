// A dense tensor: a view of memory that somebody else owns (a planned arena, a segment of the file, the caller).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "scalar_type.h"

namespace wb {

// Largest rank that a program may hold.
inline constexpr int kMaxRank = 16;

enum class ShapeDynamism : std::uint8_t {
  Static = 0,          // the shape never changes
  DynamicBound = 1,    // may shrink; memory is planned for the upper bound
  DynamicUnbound = 2,  // memory is allocated when the shape is known
};

// `sizes`, `strides` and `dim_order` point to `rank` entries each, owned by the method. Strides count elements and
// always follow from sizes and dim_order: there are no gaps, so memory holds exactly numel() elements.
struct Tensor {
  void* data = nullptr;
  std::int32_t* sizes = nullptr;
  std::int64_t* strides = nullptr;
  const std::uint8_t* dim_order = nullptr;  // dimensions from outermost to innermost
  std::size_t capacity = 0;                 // bytes that `data` (or the planned upper bound) can hold
  ScalarType dtype = ScalarType::Float;
  std::uint8_t rank = 0;
  ShapeDynamism dynamism = ShapeDynamism::Static;

  template <typename T>
  [[nodiscard]] T* mutable_data() const {
    return static_cast<T*>(data);
  }
  template <typename T>
  [[nodiscard]] const T* const_data() const {
    return static_cast<const T*>(data);
  }

  [[nodiscard]] std::int64_t size(int dim) const { return sizes[dim]; }
  [[nodiscard]] std::span<const std::int32_t> shape() const { return {sizes, rank}; }

  [[nodiscard]] std::int64_t numel() const {
    std::int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= sizes[d];
    return count;
  }
  [[nodiscard]] std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * element_size(dtype); }

  // Memory order equals logical order (dimensions 0, 1, 2, ... from the outside in). Size-1 dimensions do not count
  // against it.
  [[nodiscard]] bool is_contiguous() const {
    int last = -1;
    for (int i = 0; i < rank; ++i) {
      const int d = dim_order[i];
      if (sizes[d] == 1) continue;
      if (d < last) return false;
      last = d;
    }
    return true;
  }
  // 4-D, memory order N, H, W, C.
  [[nodiscard]] bool is_channels_last() const {
    return rank == 4 && dim_order[0] == 0 && dim_order[1] == 2 && dim_order[2] == 3 && dim_order[3] == 1;
  }
};

// Writes the strides (in elements) that `sizes` and `dim_order` imply.
inline void strides_from_dim_order(std::span<const std::int32_t> sizes, const std::uint8_t* dim_order,
                                   std::int64_t* strides) {
  std::int64_t step = 1;
  for (int i = static_cast<int>(sizes.size()) - 1; i >= 0; --i) {
    const int d = dim_order[i];
    strides[d] = step;
    step *= sizes[d] == 0 ? 1 : sizes[d];
  }
}

}  // namespace wb
