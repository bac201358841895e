// A minimum cut of a directed graph with capacities (Dinic, 1970: blocking flows along shortest paths).
#pragma once

#include <cstdint>
#include <vector>

namespace wb::engine {

class MinCut {
 public:
  using Vertex = std::uint32_t;
  static constexpr std::int64_t kInfinite = std::int64_t{1} << 60;

  Vertex add() {
    edges_of_.emplace_back();
    return static_cast<Vertex>(edges_of_.size() - 1);
  }
  // Costs `capacity` when `from` is on the source's side and `to` on the sink's.
  void connect(Vertex from, Vertex to, std::int64_t capacity);

  // Afterwards, reaches() says which vertices are on the source's side.
  void solve(Vertex source, Vertex sink);
  [[nodiscard]] bool on_source_side(Vertex vertex) const { return level_[vertex] >= 0; }

 private:
  struct Edge {
    Vertex to;
    std::int64_t left;  // capacity that is not used
  };

  bool find_levels(Vertex source, Vertex sink);
  std::int64_t push(Vertex source, Vertex sink);

  std::vector<Edge> edges_;  // edge i and its reverse i ^ 1
  std::vector<std::vector<std::uint32_t>> edges_of_;
  std::vector<std::int32_t> level_;
  std::vector<std::uint32_t> next_;
};

}  // namespace wb::engine
