#include "tracks.h"

#include <algorithm>
#include <numeric>

#include "sort.h"

namespace wb::layout {
namespace {

constexpr size_t kCareful = 256;       // segments of a gap up to which all pairs are compared
constexpr double kApart = 3;           // px: closer verticals look like one
constexpr int32_t kFallTogether = 64;  // as bad as so many crossings

bool overlap(const Segment& a, const Segment& b) { return a.low <= b.high + kApart && b.low <= a.high + kApart; }

int32_t inside(const std::vector<double>& xs, double low, double high) {
  return static_cast<int32_t>(std::lower_bound(xs.begin(), xs.end(), high) -
                              std::upper_bound(xs.begin(), xs.end(), low));
}

// Price of a's track above b's: a's parts below cut b, b's parts above cut a; both at one x lie on each other.
int32_t price(const Segment& a, const Segment& b) {
  int32_t total = inside(a.below, b.low, b.high) + inside(b.above, a.low, a.high);
  for (const double x : a.below) {
    const auto near = std::lower_bound(b.above.begin(), b.above.end(), x - kApart);
    if (near != b.above.end() && *near <= x + kApart) total += kFallTogether;
  }
  return total;
}

// An order in which wishes mostly point forward: repeatedly take what nothing is wanted above, or, in a cycle, what is
// wanted above others the most.
std::vector<int32_t> order_by_wishes(std::span<const Segment> segments) {
  const auto k = static_cast<int32_t>(segments.size());
  std::vector<int32_t> wish(static_cast<size_t>(k) * k, 0);  // > 0: row's segment above column's
  std::vector<int32_t> in(k, 0);
  std::vector<int32_t> out(k, 0);
  for (int32_t a = 0; a < k; ++a) {
    for (int32_t b = a + 1; b < k; ++b) {
      if (!overlap(segments[a], segments[b])) continue;
      const int32_t gain = price(segments[b], segments[a]) - price(segments[a], segments[b]);
      const int32_t upper = gain > 0 ? a : b;
      const int32_t lower = gain > 0 ? b : a;
      const int32_t size = gain > 0 ? gain : -gain;
      wish[static_cast<size_t>(upper) * k + lower] = size;
      out[upper] += size;
      in[lower] += size;
    }
  }
  std::vector<int32_t> order;
  std::vector<bool> taken(k, false);
  while (static_cast<int32_t>(order.size()) < k) {
    int32_t best = -1;
    const auto better = [&](int32_t a, int32_t b) {
      if ((in[a] == 0) != (in[b] == 0)) return in[a] == 0;
      return out[a] - in[a] > out[b] - in[b];
    };
    for (int32_t i = 0; i < k; ++i) {
      if (!taken[i] && (best < 0 || better(i, best))) best = i;
    }
    taken[best] = true;
    order.push_back(best);
    for (int32_t i = 0; i < k; ++i) {
      in[i] -= wish[static_cast<size_t>(best) * k + i];
      out[i] -= wish[static_cast<size_t>(i) * k + best];
    }
  }
  return order;
}

Tracks careful(std::span<const Segment> segments) {
  Tracks tracks{std::vector<int32_t>(segments.size(), 0)};
  const std::vector<int32_t> order = order_by_wishes(segments);
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (overlap(segments[order[i]], segments[order[j]])) {
        tracks.of[order[i]] = std::max(tracks.of[order[i]], tracks.of[order[j]] + 1);
      }
    }
    tracks.count = std::max(tracks.count, tracks.of[order[i]] + 1);
  }
  return tracks;
}

Tracks left_edge(std::span<const Segment> segments) {
  Tracks tracks{std::vector<int32_t>(segments.size(), 0)};
  std::vector<int32_t> order(segments.size());
  std::iota(order.begin(), order.end(), 0);
  stable_sort(order, [&](int32_t a, int32_t b) {
    return segments[a].low != segments[b].low ? segments[a].low < segments[b].low : a < b;
  });
  std::vector<std::pair<double, int32_t>> busy;  // a heap of (end, track), the earliest end first
  const auto later = [](const auto& a, const auto& b) { return a > b; };
  for (const int32_t s : order) {
    if (!busy.empty() && busy.front().first + kApart < segments[s].low) {
      std::pop_heap(busy.begin(), busy.end(), later);
      tracks.of[s] = busy.back().second;
      busy.back().first = segments[s].high;
    } else {
      tracks.of[s] = tracks.count++;
      busy.emplace_back(segments[s].high, tracks.of[s]);
    }
    std::push_heap(busy.begin(), busy.end(), later);
  }
  return tracks;
}

}  // namespace

Tracks assign_tracks(std::span<const Segment> segments) {
  return segments.size() <= kCareful ? careful(segments) : left_edge(segments);
}

}  // namespace wb::layout
