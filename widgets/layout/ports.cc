#include "ports.h"

#include <algorithm>

#include "sort.h"

namespace wb::layout {
namespace {

constexpr double kInset = 8;     // px from a box's corner
constexpr double kBetween = 12;  // px between entries

struct Entry {
  double wanted;
  int32_t id;  // link, or links + edge
  double at = 0;
};

double inset(double half) { return std::min(kInset, half / 2); }

std::vector<double> choose_exits(const Layered& g, const std::vector<double>& x) {
  std::vector<double> exit(x);
  std::vector<bool> has_lane(g.vertices(), false);
  for (size_t e = 0; e < g.from.size(); ++e) {
    if (g.course[e] == Course::kLane) has_lane[g.from[e]] = true;
  }
  for (int32_t v = 0; v < g.boxes; ++v) {
    if (has_lane[v] || g.down[v].size() != 1) continue;
    const int32_t lower = g.links[g.down[v][0]].lower;
    const double half = g.left[lower] - inset(g.left[lower]);
    const double straight = std::clamp(x[v], x[lower] - half, x[lower] + half);
    const double mine = g.left[v] - inset(g.left[v]);
    exit[v] = std::clamp(straight, x[v] - mine, x[v] + mine);
  }
  return exit;
}

// Entries of one box, in the order of where they come from.
void spread(std::vector<Entry>& entries, double centre, double half) {
  stable_sort(entries, [](const Entry& a, const Entry& b) { return a.wanted < b.wanted; });
  const double low = centre - half + inset(half);
  const double high = centre + half - inset(half);
  const auto count = static_cast<double>(entries.size());
  const double between = count > 1 ? std::min(kBetween, (high - low) / count) : 0;
  double least = low;
  for (Entry& entry : entries) {
    entry.at = std::clamp(entry.wanted, least, std::max(least, high));
    least = entry.at + between;
  }
  double most = high;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    entry->at = std::min(entry->at, most);
    most = entry->at - between;
  }
}

}  // namespace

Ports choose_ports(const Layered& g, const std::vector<double>& x, const Lanes& lanes) {
  Ports ports;
  ports.exit = choose_exits(g, x);
  const auto links = static_cast<int32_t>(g.links.size());
  const auto edges = static_cast<int32_t>(g.from.size());
  ports.link_end.resize(links);
  for (int32_t l = 0; l < links; ++l) ports.link_end[l] = x[g.links[l].lower];
  ports.lane_end.assign(edges, 0);
  const Csr by_target = group(g.vertices(), edges, [&](int32_t e) { return lanes.of[e] < 0 ? -1 : g.to[e]; });
  for (int32_t v = 0; v < g.vertices(); ++v) {
    std::vector<Entry> entries;
    if (g.is_box(v)) {
      for (const int32_t l : g.up[v]) entries.push_back({ports.exit[g.links[l].upper], l});
    }
    for (const int32_t e : by_target[v]) {
      ports.lane_end[e] = x[v];
      if (g.is_box(v)) entries.push_back({lanes.all[lanes.of[e]].x, links + e});
    }
    if (!g.is_box(v) || entries.empty()) continue;
    // Edges of one lane to one box enter at one point.
    std::vector<Entry> apart;
    for (const Entry& entry : entries) {
      const bool again = entry.id >= links && !apart.empty() && apart.back().id >= links &&
                         lanes.of[apart.back().id - links] == lanes.of[entry.id - links];
      if (!again) apart.push_back(entry);
    }
    spread(apart, x[v], g.left[v]);
    for (const Entry& entry : apart) {
      if (entry.id < links) {
        ports.link_end[entry.id] = entry.at;
        continue;
      }
      for (const int32_t e : by_target[v]) {
        if (lanes.of[e] == lanes.of[entry.id - links]) ports.lane_end[e] = entry.at;
      }
    }
  }
  return ports;
}

}  // namespace wb::layout
