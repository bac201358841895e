#include "free_rows.h"

#include <algorithm>

namespace wb::layout {

void FreeRows::take(int32_t row, double low, double high) {
  std::vector<Taken>& all = taken_[row];
  // By both ends: a box without width may stand where another one begins.
  const auto next = std::upper_bound(all.begin(), all.end(), Taken{low, high}, [](const Taken& a, const Taken& b) {
    return a.low != b.low ? a.low < b.low : a.high < b.high;
  });
  all.insert(next, {low, high});
}

// Each round moves on past whatever is in the way in one of the rows, until nothing is.
double FreeRows::rightward(int32_t first, int32_t last, double x, double left, double right, double clear) const {
  x = std::max(x, wall_ + left);
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t r = first; r <= last; ++r) {
      const std::vector<Taken>& all = taken_[r];
      auto it = std::upper_bound(all.begin(), all.end(), x - left - clear,
                                 [](double edge, const Taken& a) { return edge < a.high; });
      for (; it != all.end() && it->low < x + right + clear; ++it) {
        const double next = it->high + clear + left;
        moved = moved || next > x;  // not so when rounding alone makes them touch
        x = std::max(x, next);
      }
    }
  }
  return x;
}

std::optional<double> FreeRows::leftward(int32_t first, int32_t last, double x, double left, double right,
                                         double clear) const {
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t r = first; r <= last; ++r) {
      const std::vector<Taken>& all = taken_[r];
      auto it = std::lower_bound(all.begin(), all.end(), x + right + clear,
                                 [](const Taken& a, double edge) { return a.low < edge; });
      while (it != all.begin() && std::prev(it)->high > x - left - clear) {
        --it;
        const double next = it->low - clear - right;
        moved = moved || next < x;
        x = std::min(x, next);
      }
      if (x - left < wall_) return std::nullopt;
    }
  }
  return x;
}

double FreeRows::nearest(int32_t first, int32_t last, double wanted, double left, double right, double clear) const {
  const double to_right = rightward(first, last, wanted, left, right, clear);
  const std::optional<double> to_left = leftward(first, last, wanted, left, right, clear);
  return to_left && wanted - *to_left < to_right - wanted ? *to_left : to_right;
}

}  // namespace wb::layout
