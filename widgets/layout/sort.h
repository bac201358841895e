// A stable merge sort: insertion sort on short runs, merged from the bottom up.
//
// In place of std::sort because ties then fall the same way with every standard library, and because six of these take
// less room in WebAssembly than one of those.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace wb::layout {

template <typename T, typename Less>
void stable_sort(std::span<T> items, Less less) {
  constexpr size_t kRun = 12;
  const size_t n = items.size();
  for (size_t begin = 0; begin < n; begin += kRun) {
    for (size_t i = begin + 1; i < std::min(begin + kRun, n); ++i) {
      T item = items[i];
      size_t j = i;
      for (; j > begin && less(item, items[j - 1]); --j) items[j] = items[j - 1];
      items[j] = item;
    }
  }
  if (n <= kRun) return;
  std::vector<T> buffer(n);
  std::span<T> from = items;
  std::span<T> to = buffer;
  for (size_t run = kRun; run < n; run *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * run) {
      const size_t middle = std::min(begin + run, n);
      const size_t end = std::min(begin + 2 * run, n);
      size_t a = begin;
      size_t b = middle;
      for (size_t k = begin; k < end; ++k) {
        to[k] = b < end && (a == middle || less(from[b], from[a])) ? from[b++] : from[a++];
      }
    }
    std::swap(from, to);
  }
  if (from.data() != items.data()) std::copy(from.begin(), from.end(), items.begin());
}

template <typename T, typename Less>
void stable_sort(std::vector<T>& items, Less less) {
  stable_sort(std::span<T>(items), less);
}

}  // namespace wb::layout
