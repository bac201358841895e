#include "anchors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "free_rows.h"
#include "sort.h"

namespace wb::layout {
namespace {

double quarters(double x) { return std::round(x * 4) / 4; }

class Keeper {
 public:
  Keeper(const Layered& graph, const Input& in, const AnchoredRows& recovered)
      : g(graph), input(in), rows(recovered), free_(graph.rows, wall(in)) {
    places.wall = wall(in);
    places.x.assign(g.vertices(), std::numeric_limits<double>::quiet_NaN());
    stack_rows();
    keep_anchored();
    for (int32_t r = 0; r < g.rows; ++r) place_new(r);
    place_lines();
    place_ports();
  }

  Places places;

 private:
  static double wall(const Input& in) {
    float least = in.options.margin;
    for (const float x : in.anchor_x) {
      if (x < least) least = x;
    }
    return std::max(0.0F, least);
  }

  bool anchored(int32_t v) const {
    return v < g.boxes && !std::isnan(input.anchor_x[v]) && !std::isnan(input.anchor_y[v]);
  }
  int32_t first_row() const { return g.ports_above ? 1 : 0; }
  double top_before(int32_t r) const { return rows.top[r - first_row()]; }
  void stack_rows() {
    places.y.assign(g.boxes, 0);
    places.row_top.assign(g.rows, 0);
    places.row_bottom.assign(g.rows, 0);
    const double closest = closest_rows(input.options);
    const int32_t last = g.rows - (g.ports_below ? 1 : 0);
    // The borders stay where they are: a box anchored outside comes in.
    double bottom = g.ports_above ? 0 : -closest;
    for (int32_t r = first_row(); r < last; ++r) {
      double top = top_before(r);
      if (std::isnan(top)) {
        top = std::max<double>(input.options.margin, bottom + gap_above_new(r, last, bottom));
      } else {
        top = std::max(top, bottom + closest);
      }
      const double moved = std::isnan(top_before(r)) ? 0 : top - top_before(r);
      places.row_top[r] = top;
      bottom = top;
      for (int32_t k = g.row_start[r]; k < g.row_start[r + 1]; ++k) {
        const int32_t i = g.order[k];
        if (!g.is_box(i)) continue;
        places.y[i] = rows.home[i] ? (moved == 0 ? input.anchor_y[i] : input.anchor_y[i] + moved) : top;
        bottom = std::max(bottom, places.y[i] + g.height[i]);
      }
      places.row_bottom[r] = bottom;
    }
    if (g.ports_below) {
      const double above = last > 0 ? places.row_bottom[last - 1] : 0;
      places.row_top[last] = places.row_bottom[last] = above + input.options.gap_y;
    }
  }

  // Rows between two of before share the room there, but no more of it than usual.
  double gap_above_new(int32_t r, int32_t last, double bottom) const {
    double heights = 0;
    int32_t count = 0;
    for (; r < last && std::isnan(top_before(r)); ++r, ++count) {
      double tallest = 0;
      for (int32_t k = g.row_start[r]; k < g.row_start[r + 1]; ++k) {
        tallest = std::max(tallest, g.height[g.order[k]]);
      }
      heights += tallest;
    }
    if (r == last) return input.options.gap_y;
    const double even = std::floor((top_before(r) - bottom - heights) / (count + 1));
    return std::clamp<double>(even, closest_rows(input.options), input.options.gap_y);
  }

  // Anchored boxes of one row, those at home: where they stood, unless they grew into each other.
  void keep_anchored() {
    for (int32_t r = first_row(); r < g.rows - (g.ports_below ? 1 : 0); ++r) {
      std::vector<int32_t> kept;
      for (int32_t k = g.row_start[r]; k < g.row_start[r + 1]; ++k) {
        if (g.is_box(g.order[k]) && rows.home[g.order[k]]) kept.push_back(g.order[k]);
      }
      stable_sort(kept, [&](int32_t a, int32_t b) { return before(a) < before(b); });
      push_apart(kept);
      for (const int32_t i : kept) take(i);
    }
  }

  double before(int32_t i) const { return input.anchor_x[i] + g.left[i]; }
  void take(int32_t v) { free_.take(g.row[v], places.x[v] - g.left[v], places.x[v] + g.right[v]); }

  // Pool adjacent violators: a pool moves as one to its mean displacement.
  void push_apart(const std::vector<int32_t>& kept) {
    struct Pool {
      size_t first, count;
      double sum;  // of the places wanted for its first box
    };
    const double least = input.options.gap_x / 3.0;
    std::vector<double> offset(kept.size(), 0);  // from the first box of its row, packed
    std::vector<Pool> pools;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (i > 0) offset[i] = offset[i - 1] + g.right[kept[i - 1]] + least + g.left[kept[i]];
      pools.push_back({i, 1, before(kept[i])});
      while (pools.size() > 1) {
        const Pool& b = pools.back();
        Pool& a = pools[pools.size() - 2];
        const double between = offset[b.first] - offset[a.first];
        if (a.sum / static_cast<double>(a.count) + between <= b.sum / static_cast<double>(b.count)) break;
        a.sum += b.sum - between * static_cast<double>(b.count);
        a.count += b.count;
        pools.pop_back();
      }
    }
    double edge = places.wall;
    for (const Pool& pool : pools) {
      const double first = pool.sum / static_cast<double>(pool.count);
      for (size_t i = pool.first; i < pool.first + pool.count; ++i) {
        double& x = places.x[kept[i]];
        x = pool.count == 1 ? before(kept[i]) : quarters(first + offset[i] - offset[pool.first]);
        x = std::max(x, edge + g.left[kept[i]]);
        edge = x + g.right[kept[i]] + least;
      }
    }
  }

  // Mean place of the neighbours that stand already.
  double wanted(int32_t v) const {
    double sum = 0;
    int32_t count = 0;
    const auto add = [&](int32_t other) {
      if (std::isnan(places.x[other])) return;
      sum += places.x[other];
      ++count;
    };
    for (const int32_t e : edges_in_[v]) add(g.from[e]);
    for (const int32_t e : edges_out_[v]) add(g.to[e]);
    return count > 0 ? sum / count : places.wall + g.left[v];
  }

  // New boxes, and anchored ones that had to leave their row.
  void place_new(int32_t r) {
    for (int32_t k = g.row_start[r]; k < g.row_start[r + 1]; ++k) {
      const int32_t i = g.order[k];
      if (!g.is_box(i) || !std::isnan(places.x[i])) continue;
      const double x = anchored(i) ? before(i) : quarters(wanted(i));
      places.x[i] = free_.nearest(r, r, x, g.left[i], g.right[i], input.options.gap_x / 3.0);
      take(i);
    }
  }

  // Chains of dummies, shortest first, each in one straight column.
  void place_lines() {
    const Csr chains =
        group(g.vertices(), g.vertices(), [&](int32_t v) { return g.kind[v] == Kind::kDummy ? g.net[v] : -1; });
    std::vector<int32_t> nets;
    for (int32_t v = 0; v < g.vertices(); ++v) {
      if (!chains[v].empty()) nets.push_back(v);
    }
    stable_sort(nets, [&](int32_t a, int32_t b) { return chains[a].size() < chains[b].size(); });
    for (const int32_t net : nets) {
      const int32_t first = g.row[chains[net].front()];
      const int32_t last = g.row[chains[net].back()];
      const double source = std::isnan(places.x[net]) ? wanted(net) : places.x[net];
      const double x = free_.nearest(first, last, quarters(source), 0, 0, input.options.gap_x / 4.0);
      for (const int32_t d : chains[net]) {
        places.x[d] = x;
        take(d);
      }
    }
  }

  void place_ports() {
    for (int32_t v = g.boxes; v < g.vertices(); ++v) {
      if (g.kind[v] != Kind::kPort) continue;
      const bool above = g.net[v] == v;
      const Csr& side = above ? g.down : g.up;
      double x = wanted(v);
      if (!side[v].empty()) x = places.x[above ? g.links[side[v][0]].lower : g.links[side[v][0]].upper];
      if (std::isnan(x)) x = places.wall;
      places.x[v] = free_.nearest(g.row[v], g.row[v], x, 0, 0, input.options.gap_x / 4.0);
      take(v);
    }
  }

  const Layered& g;
  const Input& input;
  const AnchoredRows& rows;
  FreeRows free_;
  Csr edges_in_ = group(g.vertices(), static_cast<int32_t>(g.to.size()), [&](int32_t e) { return g.to[e]; });
  Csr edges_out_ = group(g.vertices(), static_cast<int32_t>(g.from.size()), [&](int32_t e) { return g.from[e]; });
};

}  // namespace

Places place_anchored(const Layered& g, const Input& input, const AnchoredRows& rows) {
  return Keeper(g, input, rows).places;
}

}  // namespace wb::layout
