#include "engine/passes/min_cut.h"

#include <algorithm>

namespace wb::engine {

void MinCut::connect(Vertex from, Vertex to, std::int64_t capacity) {
  if (from == to || capacity <= 0) return;
  edges_of_[from].push_back(static_cast<std::uint32_t>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(static_cast<std::uint32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::find_levels(Vertex source, Vertex sink) {
  level_.assign(edges_of_.size(), -1);
  level_[source] = 0;
  std::vector<Vertex> queue = {source};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::uint32_t e : edges_of_[queue[i]]) {
      if (edges_[e].left == 0 || level_[edges_[e].to] >= 0) continue;
      level_[edges_[e].to] = level_[queue[i]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[sink] >= 0;
}

// One augmenting path, by an explicit stack: graphs may be deep.
std::int64_t MinCut::push(Vertex source, Vertex sink) {
  std::vector<std::uint32_t> path;
  Vertex at = source;
  while (at != sink) {
    std::uint32_t& next = next_[at];
    while (next < edges_of_[at].size()) {
      const Edge& edge = edges_[edges_of_[at][next]];
      if (edge.left > 0 && level_[edge.to] == level_[at] + 1) break;
      ++next;
    }
    if (next < edges_of_[at].size()) {
      path.push_back(edges_of_[at][next]);
      at = edges_[path.back()].to;
      continue;
    }
    if (path.empty()) return 0;
    at = edges_[path.back() ^ 1U].to;
    path.pop_back();
    ++next_[at];
  }
  std::int64_t flow = kInfinite;
  for (const std::uint32_t e : path) flow = std::min(flow, edges_[e].left);
  for (const std::uint32_t e : path) {
    edges_[e].left -= flow;
    edges_[e ^ 1U].left += flow;
  }
  return flow;
}

void MinCut::solve(Vertex source, Vertex sink) {
  while (find_levels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    while (push(source, sink) > 0) {
    }
  }
}

}  // namespace wb::engine
