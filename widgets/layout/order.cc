#include "order.h"

#include <algorithm>
#include <limits>

#include "sort.h"

namespace wb::layout {
namespace {

constexpr int32_t kSmall = 4000;  // vertices, up to which neighbours are exchanged
constexpr int32_t kExchangeRounds = 4;

void number(Layered& g, int32_t r) {
  for (int32_t k = g.row_start[r]; k < g.row_start[r + 1]; ++k) g.position[g.order[k]] = k - g.row_start[r];
}

// Mean position of the neighbours in the row above (or below), or `otherwise` where there are none.
double barycentre(const Layered& g, int32_t v, bool downward, double otherwise) {
  double sum = 0;
  double weights = 0;
  for (const int32_t l : (downward ? g.up : g.down)[v]) {
    const double weight = std::max(1.0F, g.links[l].weight);
    sum += weight * g.position[downward ? g.links[l].upper : g.links[l].lower];
    weights += weight;
  }
  return weights > 0 ? sum / weights : otherwise;
}

struct Sorter {
  Layered& g;
  std::vector<double> key = std::vector<double>(g.vertices());

  // Ties stay as they stand: at `first` by number, so that lines are to the right of boxes.
  void sort_row(int32_t r, bool downward, bool first) {
    const std::span<int32_t> row(g.order.data() + g.row_start[r], g.row_start[r + 1] - g.row_start[r]);
    const int32_t fixed = downward ? r - 1 : r + 1;
    double scale = 1;
    if (fixed >= 0 && fixed < g.rows && !row.empty()) {
      scale = static_cast<double>(g.row_start[fixed + 1] - g.row_start[fixed]) / static_cast<double>(row.size());
    }
    for (const int32_t v : row) {
      key[v] = barycentre(g, v, downward, first ? std::numeric_limits<double>::infinity() : g.position[v] * scale);
    }
    stable_sort(row, [&](int32_t a, int32_t b) {
      return g.component[a] != g.component[b] ? g.component[a] < g.component[b] : key[a] < key[b];
    });
    number(g, r);
  }
};

int64_t crossings_below(const Layered& g, int32_t r, std::vector<int32_t>& tree, std::vector<int32_t>& lowers) {
  const int32_t size = g.row_start[r + 2] - g.row_start[r + 1];
  tree.assign(size + 1, 0);
  int64_t crossings = 0;
  int64_t total = 0;
  for (int32_t k = g.row_start[r]; k < g.row_start[r + 1]; ++k) {
    lowers.clear();
    for (const int32_t l : g.down[g.order[k]]) lowers.push_back(g.position[g.links[l].lower]);
    for (const int32_t p : lowers) {
      int64_t not_right = 0;
      for (int32_t i = p + 1; i > 0; i -= i & -i) not_right += tree[i];
      crossings += total - not_right;
    }
    for (const int32_t p : lowers) {
      for (int32_t i = p + 1; i <= size; i += i & -i) ++tree[i];
      ++total;
    }
  }
  return crossings;
}

// Crossings between the links of a and of b when a stands left of b, less those when b stands left of a.
int64_t gain_of_exchange(const Layered& g, int32_t a, int32_t b) {
  int64_t gain = 0;
  for (const bool downward : {false, true}) {
    const Csr& side = downward ? g.down : g.up;
    for (const int32_t i : side[a]) {
      const int32_t p = g.position[downward ? g.links[i].lower : g.links[i].upper];
      for (const int32_t j : side[b]) {
        const int32_t q = g.position[downward ? g.links[j].lower : g.links[j].upper];
        gain += p > q ? 1 : p < q ? -1 : 0;
      }
    }
  }
  return gain;
}

void exchange_neighbours(Layered& g) {
  for (int32_t round = 0; round < kExchangeRounds; ++round) {
    bool better = false;
    for (int32_t r = 0; r < g.rows; ++r) {
      for (int32_t k = g.row_start[r]; k + 1 < g.row_start[r + 1]; ++k) {
        const int32_t a = g.order[k];
        const int32_t b = g.order[k + 1];
        if (g.component[a] != g.component[b] || gain_of_exchange(g, a, b) <= 0) continue;
        std::swap(g.order[k], g.order[k + 1]);
        std::swap(g.position[a], g.position[b]);
        better = true;
      }
    }
    if (!better) return;
  }
}

}  // namespace

int64_t count_crossings(const Layered& g) {
  std::vector<int32_t> tree;
  std::vector<int32_t> lowers;
  int64_t crossings = 0;
  for (int32_t r = 0; r + 1 < g.rows; ++r) crossings += crossings_below(g, r, tree, lowers);
  return crossings;
}

void order_rows(Layered& g, int32_t sweeps) {
  Sorter sorter{g};
  for (int32_t r = 0; r < g.rows; ++r) sorter.sort_row(r, true, true);
  int64_t fewest = count_crossings(g);
  std::vector<int32_t> best = g.order;
  for (int32_t sweep = 0; sweep < sweeps && fewest > 0; ++sweep) {
    if (sweep % 2 == 0) {
      for (int32_t r = g.rows - 2; r >= 0; --r) sorter.sort_row(r, false, false);
    } else {
      for (int32_t r = 1; r < g.rows; ++r) sorter.sort_row(r, true, false);
    }
    if (g.vertices() <= kSmall) exchange_neighbours(g);
    const int64_t crossings = count_crossings(g);
    if (crossings < fewest) {
      fewest = crossings;
      best = g.order;
    }
  }
  g.order = std::move(best);
  for (int32_t r = 0; r < g.rows; ++r) number(g, r);
}

}  // namespace wb::layout
