#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "anchors.h"
#include "csr.h"
#include "sort.h"

namespace wb::layout {
namespace {

constexpr double kSameRow = 8;   // px between tops of one row, at most
constexpr double kClosest = 12;  // px between rows that were pushed together, at most

bool anchored(const Input& input, int32_t i) {
  return !input.anchor_x.empty() && !std::isnan(input.anchor_x[i]) && !std::isnan(input.anchor_y[i]);
}

// The rows of before, from their tops; -1 for a box without an anchor. Where a whole row is gone, its place is kept
// free for new boxes: as many rows as fit between the two that are left.
AnchoredRows recover(const Input& input) {
  const auto n = static_cast<int32_t>(input.width.size());
  AnchoredRows rows{std::vector<int32_t>(n, -1), std::vector<bool>(n, false), {}};
  std::vector<int32_t> by_top;
  double least = std::numeric_limits<double>::infinity();  // height of a new box
  for (int32_t i = 0; i < n; ++i) {
    if (anchored(input, i)) {
      by_top.push_back(i);
    } else {
      least = std::min<double>(least, input.height[i]);
    }
  }
  const double fresh = static_cast<double>(n) - static_cast<double>(by_top.size());
  stable_sort(by_top, [&](int32_t a, int32_t b) { return input.anchor_y[a] < input.anchor_y[b]; });
  const double closest = closest_rows(input.options);
  const double same = std::min(kSameRow, std::max(0.5, input.options.gap_y / 2.0));
  double top = -std::numeric_limits<double>::infinity();
  double bottom = 0;
  for (const int32_t i : by_top) {
    if (input.anchor_y[i] - top > same) {
      top = input.anchor_y[i];
      const double fit = std::floor((top - bottom - closest) / std::max(1.0, least + closest));
      // There are never more rows than new boxes, whatever the room.
      const auto between = static_cast<size_t>(std::clamp(fit, 0.0, fresh));
      rows.top.insert(rows.top.end(), between, std::numeric_limits<double>::quiet_NaN());
      rows.top.push_back(top);
      bottom = top;
    }
    rows.of[i] = static_cast<int32_t>(rows.top.size()) - 1;
    bottom = std::max(bottom, static_cast<double>(input.anchor_y[i]) + input.height[i]);
  }
  return rows;
}

void leave_out_empty(AnchoredRows& rows) {
  std::vector<int32_t> number(rows.top.size(), -1);
  for (const int32_t r : rows.of) number[r] = 0;
  std::vector<double> top;
  for (size_t r = 0; r < number.size(); ++r) {
    if (number[r] < 0) continue;
    number[r] = static_cast<int32_t>(top.size());
    top.push_back(rows.top[r]);
  }
  for (int32_t& r : rows.of) r = number[r];
  rows.top = std::move(top);
}

}  // namespace

double closest_rows(const Options& options) { return std::min(kClosest, options.gap_y / 3.0); }

bool has_anchors(const Input& input) {
  for (int32_t i = 0; i < static_cast<int32_t>(input.width.size()); ++i) {
    if (anchored(input, i)) return true;
  }
  return false;
}

AnchoredRows assign_anchored_rows(const Input& input) {
  AnchoredRows rows = recover(input);
  const auto n = static_cast<int32_t>(input.width.size());
  const auto m = static_cast<int32_t>(input.src.size());
  const Csr out = group(n, m, [&](int32_t e) { return input.src[e] < input.dst[e] ? input.src[e] : -1; });
  std::vector<int32_t> least(n, 0);
  std::vector<bool> fed(n, false);
  for (int32_t e = 0; e < m; ++e) {
    if (input.src[e] < input.dst[e]) fed[input.dst[e]] = true;
  }
  auto count = static_cast<int32_t>(rows.top.size());
  std::vector<bool> fresh(n, false);
  for (int32_t i = 0; i < n; ++i) {
    fresh[i] = rows.of[i] < 0;
    rows.home[i] = rows.of[i] >= least[i];
    rows.of[i] = std::max(rows.of[i], least[i]);
    count = std::max(count, rows.of[i] + 1);
    for (const int32_t e : out[i]) least[input.dst[e]] = std::max(least[input.dst[e]], rows.of[i] + 1);
  }
  // New boxes without a producer stand just above their first consumer.
  for (int32_t i = n - 1; i >= 0; --i) {
    if (!fresh[i] || fed[i] || out[i].empty()) continue;
    int32_t lowest = count;
    for (const int32_t e : out[i]) lowest = std::min(lowest, rows.of[input.dst[e]]);
    rows.of[i] = lowest - 1;
  }
  rows.top.resize(count, std::numeric_limits<double>::quiet_NaN());
  leave_out_empty(rows);
  return rows;
}

}  // namespace wb::layout
