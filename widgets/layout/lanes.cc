#include "lanes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sort.h"

namespace wb::layout {
namespace {

constexpr double kStep = 8;      // px between lanes
constexpr double kWidest = 800;  // px that all lanes side by side may take; then they stand closer

// How far the rows reach to one side: range maximum, and raising of a range.
class Skyline {
 public:
  explicit Skyline(int32_t rows) : rows_(std::max(rows, 1)), most_(4 * rows_, kNothing), raised_(4 * rows_, kNothing) {}

  void raise(int32_t a, int32_t b, double value) { raise(a, b, value, 1, 0, rows_ - 1); }
  [[nodiscard]] double most(int32_t a, int32_t b) const { return most(a, b, 1, 0, rows_ - 1); }

  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

 private:
  void raise(int32_t a, int32_t b, double value, int32_t node, int32_t low, int32_t high) {
    if (b < low || high < a) return;
    most_[node] = std::max(most_[node], value);
    if (a <= low && high <= b) {
      raised_[node] = std::max(raised_[node], value);
      return;
    }
    const int32_t middle = (low + high) / 2;
    raise(a, b, value, 2 * node, low, middle);
    raise(a, b, value, 2 * node + 1, middle + 1, high);
  }

  [[nodiscard]] double most(int32_t a, int32_t b, int32_t node, int32_t low, int32_t high) const {
    if (b < low || high < a) return kNothing;
    if (a <= low && high <= b) return most_[node];
    const int32_t middle = (low + high) / 2;
    const double inside = std::max(most(a, b, 2 * node, low, middle), most(a, b, 2 * node + 1, middle + 1, high));
    return std::max(raised_[node], inside);
  }

  int32_t rows_;
  std::vector<double> most_, raised_;
};

Lanes collect(const Layered& g) {
  Lanes lanes;
  const auto m = static_cast<int32_t>(g.from.size());
  lanes.of.assign(m, -1);
  std::vector<int32_t> lane_of(2 * static_cast<size_t>(g.vertices()), -1);
  for (int32_t e = 0; e < m; ++e) {
    if (g.course[e] != Course::kLane) continue;
    const int32_t a = g.row[g.from[e]];
    const int32_t b = g.row[g.to[e]];
    const bool upward = b <= a;
    int32_t& lane = lane_of[2 * static_cast<size_t>(g.from[e]) + (upward ? 1 : 0)];
    if (lane < 0) {
      lane = static_cast<int32_t>(lanes.all.size());
      lanes.all.push_back({g.from[e], upward, upward ? a : a + 1, a});
    }
    lanes.of[e] = lane;
    Lane& it = lanes.all[lane];
    if (upward) {
      it.first = std::min(it.first, b);
    } else {
      it.last = std::max(it.last, b - 1);
    }
  }
  return lanes;
}

double step_between(const Layered& g, const std::vector<Lane>& lanes) {
  std::vector<int32_t> change(g.rows + 1, 0);
  for (const Lane& lane : lanes) {
    ++change[lane.first];
    --change[lane.last + 1];
  }
  int32_t depth = 0;
  int32_t deepest = 1;
  for (const int32_t c : change) deepest = std::max(deepest, depth += c);
  return std::min(kStep, kWidest / deepest);
}

}  // namespace

Lanes choose_lanes(const Layered& g, const std::vector<double>& x, double gap_x, double wall) {
  Lanes lanes = collect(g);
  if (lanes.all.empty()) return lanes;
  const auto count = static_cast<int32_t>(lanes.all.size());
  const double step = step_between(g, lanes.all);
  const double clear = std::max(0.0, 0.75 * gap_x - step);
  Skyline right(g.rows);
  Skyline left(g.rows);
  for (int32_t r = 0; r < g.rows; ++r) {
    double most_right = Skyline::kNothing;
    double most_left = Skyline::kNothing;
    for (int32_t k = g.row_start[r]; k < g.row_start[r + 1]; ++k) {
      const int32_t v = g.order[k];
      most_right = std::max(most_right, x[v] + g.right[v]);
      most_left = std::max(most_left, g.left[v] - x[v]);
    }
    right.raise(r, r, most_right + clear);
    left.raise(r, r, most_left + clear);
  }
  std::vector<double> target_sum(count, 0);
  std::vector<int32_t> targets(count, 0);
  for (size_t e = 0; e < lanes.of.size(); ++e) {
    if (lanes.of[e] < 0) continue;
    target_sum[lanes.of[e]] += x[g.to[e]];
    ++targets[lanes.of[e]];
  }
  std::vector<int32_t> shortest_first(count);
  std::iota(shortest_first.begin(), shortest_first.end(), 0);
  stable_sort(shortest_first, [&](int32_t a, int32_t b) {
    const int32_t length_a = lanes.all[a].last - lanes.all[a].first;
    const int32_t length_b = lanes.all[b].last - lanes.all[b].first;
    return length_a != length_b ? length_a < length_b : a < b;
  });
  for (const int32_t i : shortest_first) {
    Lane& lane = lanes.all[i];
    const double source = x[lane.net];
    const double target = target_sum[i] / targets[i];
    const auto beside = [&](const Skyline& side, double otherwise) {
      const double most = side.most(lane.first, lane.last);
      return std::ceil(((most == Skyline::kNothing ? otherwise : most) + step) * 4) / 4;
    };
    const double at_right = beside(right, source);
    const double at_left = -beside(left, -source);
    const auto cost = [&](double at) { return std::abs(at - source) + std::abs(at - target); };
    if (at_left >= wall && cost(at_left) < cost(at_right)) {
      lane.x = at_left;
      left.raise(lane.first, lane.last, -at_left);
    } else {
      lane.x = at_right;
      right.raise(lane.first, lane.last, at_right);
    }
  }
  return lanes;
}

}  // namespace wb::layout
