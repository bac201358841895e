// Lists of items by owner, in two flat arrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wb::layout {

struct Csr {
  std::vector<int32_t> start{0};  // [owners + 1]
  std::vector<int32_t> items;

  [[nodiscard]] std::span<const int32_t> operator[](int32_t owner) const {
    return {items.data() + start[owner], static_cast<size_t>(start[owner + 1] - start[owner])};
  }
};

// Item i belongs to owner_of(i); a negative owner leaves it out. Items of one owner stay in ascending order.
template <typename OwnerOf>
[[nodiscard]] Csr group(int32_t owners, int32_t items, OwnerOf owner_of) {
  Csr csr;
  csr.start.assign(owners + 1, 0);
  for (int32_t i = 0; i < items; ++i) {
    if (const int32_t owner = owner_of(i); owner >= 0) ++csr.start[owner + 1];
  }
  for (int32_t o = 0; o < owners; ++o) csr.start[o + 1] += csr.start[o];
  csr.items.resize(csr.start[owners]);
  std::vector<int32_t> next(csr.start.begin(), csr.start.end() - 1);
  for (int32_t i = 0; i < items; ++i) {
    if (const int32_t owner = owner_of(i); owner >= 0) csr.items[next[owner]++] = i;
  }
  return csr;
}

}  // namespace wb::layout
