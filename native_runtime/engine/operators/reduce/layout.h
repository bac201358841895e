// Which dimensions a reduction runs over: neighbours that are both kept or both reduced are merged.
#pragma once

#include <cstdint>

#include "engine/graph.h"

namespace wb::engine::WB_ISA {

struct Extents {
  int rank = 0;
  std::int64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};

  void push(std::int64_t size, std::int64_t stride) {
    sizes[rank] = size;
    strides[rank++] = stride;
  }
  [[nodiscard]] std::int64_t count() const {
    std::int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= sizes[d];
    return n;
  }
  // Of the element with this number, the last dimension running fastest.
  [[nodiscard]] std::int64_t offset(std::int64_t index) const {
    std::int64_t at = 0;
    for (int d = rank - 1; d >= 0; --d) {
      at += index % sizes[d] * strides[d];
      index /= sizes[d];
    }
    return at;
  }
};

// For each element of `kept` (and each of `inner` columns, unless the innermost dimension is reduced): all elements of
// `reduced` (and the `inner` ones that follow each other).
struct ReduceLayout {
  Extents kept, reduced;
  std::int64_t inner = 1;
  bool inner_reduced = true;
  std::int64_t outputs = 1;  // elements of the result
  std::int64_t count = 1;    // elements that each is made of

  ReduceLayout() = default;
  ReduceLayout(const Shape& in, std::uint32_t mask);
};

}  // namespace wb::engine::WB_ISA
