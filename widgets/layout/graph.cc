#include "graph.h"

#include <algorithm>
#include <numeric>

#include "sort.h"

namespace wb::layout {
namespace {

constexpr double kLoopWidth = 14;  // px at the right of a box with an edge to itself

int32_t add_vertex(Layered& g, Kind kind, int32_t row, int32_t net, int32_t above, int32_t component) {
  g.kind.push_back(kind);
  g.row.push_back(row);
  g.net.push_back(net);
  g.above.push_back(above);
  g.component.push_back(component);
  g.left.push_back(0);
  g.right.push_back(0);
  g.height.push_back(0);
  return g.vertices() - 1;
}

int32_t find_root(std::vector<int32_t>& parent, int32_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

// The root of a piece is its first box.
std::vector<int32_t> connected_pieces(const Input& input) {
  std::vector<int32_t> parent(input.width.size());
  std::iota(parent.begin(), parent.end(), 0);
  for (size_t e = 0; e < input.src.size(); ++e) {
    if (input.src[e] < 0 || input.dst[e] < 0) continue;
    const int32_t a = find_root(parent, input.src[e]);
    const int32_t b = find_root(parent, input.dst[e]);
    parent[std::max(a, b)] = std::min(a, b);
  }
  for (size_t i = 0; i < parent.size(); ++i) parent[i] = find_root(parent, static_cast<int32_t>(i));
  return parent;
}

void add_boxes(Layered& g, const Input& input, const std::vector<int32_t>& row) {
  g.boxes = static_cast<int32_t>(input.width.size());
  const std::vector<int32_t> component = connected_pieces(input);
  for (int32_t i = 0; i < g.boxes; ++i) {
    add_vertex(g, Kind::kBox, row[i] + (g.ports_above ? 1 : 0), i, -1, component[i]);
    g.left[i] = g.right[i] = input.width[i] / 2.0;
    g.height[i] = input.height[i];
    g.rows = std::max(g.rows, g.row[i] + 1);
  }
}

void add_ports(Layered& g, const Input& input) {
  const auto m = static_cast<int32_t>(input.src.size());
  std::vector<int32_t> port_of(g.boxes, -1);
  const int32_t bottom = std::max(g.rows, g.ports_above ? 1 : 0);
  if (g.ports_above || g.ports_below) g.rows = bottom + (g.ports_below ? 1 : 0);
  g.from.assign(m, -1);
  g.to.assign(m, -1);
  for (int32_t e = 0; e < m; ++e) {
    const int32_t s = input.src[e];
    const int32_t t = input.dst[e];
    const int32_t piece = t >= 0 ? g.component[t] : s >= 0 ? g.component[s] : g.boxes;
    g.from[e] = s >= 0 ? s : add_vertex(g, Kind::kPort, 0, g.vertices(), -1, piece);
    if (t >= 0) {
      g.to[e] = t;
    } else if (s >= 0) {
      if (port_of[s] < 0) port_of[s] = add_vertex(g, Kind::kPort, bottom, s, -1, piece);
      g.to[e] = port_of[s];
    } else {
      g.to[e] = add_vertex(g, Kind::kPort, bottom, g.from[e], -1, piece);
    }
  }
}

// The greatest span for which the dummies keep within the bound. `forward` is sorted by net, then by span.
int32_t affordable_span(const Layered& g, const std::vector<int32_t>& forward, int32_t max_span) {
  const auto size = static_cast<int64_t>(g.boxes) + static_cast<int64_t>(g.from.size());
  const int64_t bound = 2 * size + 1000;
  std::vector<int64_t> more(max_span + 1, 0);  // dummies that a span adds to those of the span before
  int32_t net = -1;
  int32_t before = 1;
  for (const int32_t e : forward) {
    const int32_t span = g.row[g.to[e]] - g.row[g.from[e]];
    if (g.from[e] != net) before = 1;
    net = g.from[e];
    if (span <= max_span) more[span] += span - before;
    before = span;
  }
  int64_t total = 0;
  for (int32_t span = 1; span <= max_span; ++span) {
    total += more[span];
    if (total > bound) return span - 1;
  }
  return max_span;
}

// Chains of dummies, net by net; an edge ends where the chain passes the row above its target.
void add_chains(Layered& g, const Input& input, const std::vector<int32_t>& forward, int32_t max_span) {
  int32_t net = -1;
  int32_t tail = -1;
  for (const int32_t e : forward) {
    if (g.from[e] != net) net = tail = g.from[e];
    const int32_t target = g.to[e];
    if (g.row[target] - g.row[net] > max_span) {
      g.course[e] = Course::kLane;
      continue;
    }
    const auto weight = static_cast<float>(input.weight[e]);
    while (g.row[tail] < g.row[target] - 1) {
      const int32_t dummy = add_vertex(g, Kind::kDummy, g.row[tail] + 1, g.net[net], tail, g.component[net]);
      g.links.push_back({tail, dummy, weight});
      tail = dummy;
    }
    // Edges between the same two vertices are one link.
    if (!g.links.empty() && g.links.back().upper == tail && g.links.back().lower == target) {
      g.links.back().weight += weight;
    } else {
      g.links.push_back({tail, target, weight});
    }
    g.last[e] = static_cast<int32_t>(g.links.size()) - 1;
  }
}

}  // namespace

Layered build(const Input& input, const std::vector<int32_t>& row) {
  Layered g;
  const auto m = static_cast<int32_t>(input.src.size());
  for (int32_t e = 0; e < m; ++e) {
    g.ports_above |= input.src[e] < 0;
    g.ports_below |= input.dst[e] < 0;
  }
  add_boxes(g, input, row);
  add_ports(g, input);
  g.course.assign(m, Course::kLane);
  g.last.assign(m, -1);
  std::vector<int32_t> forward;
  for (int32_t e = 0; e < m; ++e) {
    if (g.from[e] == g.to[e]) {
      g.course[e] = Course::kLoop;
      g.right[g.from[e]] = input.width[g.from[e]] / 2.0 + kLoopWidth;
    } else if (g.row[g.from[e]] < g.row[g.to[e]]) {
      g.course[e] = Course::kChain;
      forward.push_back(e);
    }
  }
  stable_sort(forward, [&](int32_t a, int32_t b) {
    if (g.from[a] != g.from[b]) return g.from[a] < g.from[b];
    if (g.row[g.to[a]] != g.row[g.to[b]]) return g.row[g.to[a]] < g.row[g.to[b]];
    if (g.to[a] != g.to[b]) return g.to[a] < g.to[b];
    return a < b;
  });
  add_chains(g, input, forward, affordable_span(g, forward, input.options.max_span));

  const auto links = static_cast<int32_t>(g.links.size());
  g.down = group(g.vertices(), links, [&](int32_t l) { return g.links[l].upper; });
  g.up = group(g.vertices(), links, [&](int32_t l) { return g.links[l].lower; });
  Csr by_row = group(g.rows, g.vertices(), [&](int32_t v) { return g.row[v]; });
  g.row_start = std::move(by_row.start);
  g.order = std::move(by_row.items);
  g.position.resize(g.vertices());
  for (int32_t r = 0; r < g.rows; ++r) {
    for (int32_t k = g.row_start[r]; k < g.row_start[r + 1]; ++k) g.position[g.order[k]] = k - g.row_start[r];
  }
  return g;
}

}  // namespace wb::layout
