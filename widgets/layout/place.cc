#include "place.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "sort.h"

namespace wb::layout {
namespace {

constexpr int32_t kRounds = 12;
constexpr double kWidening = 2.2;  // times the widest row, at which columns are cut

// What decides which links become straight.
class Alignment {
 public:
  explicit Alignment(const Layered& graph) : g(graph) {
    measure_paths();
    const auto links = static_cast<int32_t>(g.links.size());
    ranked_.reserve(links);
    for (int32_t l = 0; l < links; ++l) {
      if (const int32_t c = rank_of(l); c >= 0) ranked_.emplace_back(c, l);
    }
    stable_sort(ranked_, [&](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return g.links[a.second].weight > g.links[b.second].weight;
    });
  }

  // Columns then pass at most `most_rows` rows.
  void align(int32_t most_rows) {
    most_rows_ = most_rows;
    below.assign(g.vertices(), -1);
    above.assign(g.vertices(), -1);
    other_end_.resize(g.vertices());
    std::iota(other_end_.begin(), other_end_.end(), 0);
    accepted_.assign(g.rows, {});
    for (const auto& entry : ranked_) join(g.links[entry.second]);
  }

  const Layered& g;
  std::vector<int32_t> below, above;  // the vertex aligned with in the next and the previous row; -1: none

 private:
  // Longest paths in boxes, to each vertex and from it; and which vertices belong to a branch of its own: boxes, and
  // the lines of a producer that nobody else reads. The others are skips beside a branch.
  void measure_paths() {
    std::vector<int32_t> readers(g.vertices(), 0);
    for (size_t e = 0; e < g.from.size(); ++e) ++readers[g.from[e]];
    std::vector<int32_t> by_row(g.order);
    for (const int32_t v : by_row) {
      solid_[v] = g.is_box(v) || readers[g.net[v]] == 1;
      head_[v] = g.is_box(v) ? 1 : 0;
      int32_t longest = 0;
      for (const int32_t l : g.up[v]) longest = std::max(longest, head_[g.links[l].upper]);
      head_[v] += longest;
    }
    std::reverse(by_row.begin(), by_row.end());
    for (const int32_t v : by_row) {
      tail_[v] = g.is_box(v) ? 1 : 0;
      int32_t longest = 0;
      for (const int32_t l : g.down[v]) longest = std::max(longest, tail_[g.links[l].lower]);
      tail_[v] += longest;
    }
  }

  // Among the branches at one side of v, is `other` the one to stand straight: the only one, the middle one of an odd
  // number, the longer one of two? Of four none is: v stands at the centre.
  bool preferred(int32_t v, int32_t other, bool downward) const {
    int32_t branches = 0;
    int32_t lefter = 0;
    int32_t rival = -1;
    for (const int32_t l : (downward ? g.down : g.up)[v]) {
      const int32_t u = downward ? g.links[l].lower : g.links[l].upper;
      if (!solid_[u]) continue;
      ++branches;
      if (g.position[u] < g.position[other]) ++lefter;
      if (u != other) rival = u;
    }
    if (branches == 2) {
      const std::vector<int32_t>& length = downward ? tail_ : head_;
      return length[other] > length[rival];
    }
    return branches % 2 == 1 && lefter == branches / 2;
  }

  int32_t rank_of(int32_t l) const {
    const Link& link = g.links[l];
    if (g.kind[link.upper] == Kind::kDummy && g.kind[link.lower] == Kind::kDummy) return 0;
    if (!solid_[link.upper] || !solid_[link.lower]) return 2;
    return preferred(link.upper, link.lower, true) && preferred(link.lower, link.upper, false) ? 1 : -1;
  }

  // Accepts the link if both ends are free, no accepted link of the same rows crosses it, and the column that it makes
  // is not too tall.
  void join(const Link& link) {
    if (below[link.upper] >= 0 || above[link.lower] >= 0) return;
    const int32_t top = other_end_[link.upper];
    const int32_t bottom = other_end_[link.lower];
    if (g.row[bottom] - g.row[top] >= most_rows_) return;
    auto& row = accepted_[g.row[link.lower]];
    const std::pair place{g.position[link.upper], g.position[link.lower]};
    const auto next = std::lower_bound(row.begin(), row.end(), place);
    if (next != row.end() && next->second < place.second) return;
    if (next != row.begin() && std::prev(next)->second > place.second) return;
    row.insert(next, place);
    below[link.upper] = link.lower;
    above[link.lower] = link.upper;
    other_end_[top] = bottom;
    other_end_[bottom] = top;
  }

  std::vector<std::pair<int32_t, int32_t>> ranked_;  // class, link
  std::vector<int32_t> head_ = std::vector<int32_t>(g.vertices(), 0);
  std::vector<int32_t> tail_ = head_;
  std::vector<bool> solid_ = std::vector<bool>(g.vertices(), true);
  int32_t most_rows_ = 0;
  std::vector<int32_t> other_end_;                                  // of the column that ends at a vertex
  std::vector<std::vector<std::pair<int32_t, int32_t>>> accepted_;  // positions of the ends, by the lower row
};

// Columns with their neighbours in all rows, numbered such that a left neighbour has a lower number.
class Columns {
 public:
  Columns(const Layered& graph, const Alignment& alignment, double gap_x) : g(graph), of(g.vertices(), -1) {
    std::vector<int32_t> raw(g.vertices(), -1);
    int32_t count = 0;
    for (const int32_t v : g.order) raw[v] = alignment.above[v] >= 0 ? raw[alignment.above[v]] : count++;
    number_from_left(raw, count);
    size = count;
    const auto right_of = [&](int32_t k) { return k + 1 < g.row_start[g.row[g.order[k]] + 1] ? k + 1 : -1; };
    const auto total = static_cast<int32_t>(g.order.size());
    pairs_.reserve(total);
    for (int32_t k = 0; k < total; ++k) {
      const int32_t next = right_of(k);
      if (next < 0) continue;
      const int32_t a = g.order[k];
      const int32_t b = g.order[next];
      // Whole quarters, so that rounding to quarters keeps the distance.
      pairs_.push_back({of[a], of[b], std::ceil((g.right[a] + g.gap(a, b, gap_x) + g.left[b]) * 4) / 4});
    }
    const auto pairs = static_cast<int32_t>(pairs_.size());
    by_right_ = group(size, pairs, [&](int32_t p) { return pairs_[p].b; });
    by_left_ = group(size, pairs, [&](int32_t p) { return pairs_[p].a; });
    members_ = group(size, g.vertices(), [&](int32_t v) { return of[v]; });
  }

  [[nodiscard]] std::vector<double> solve(const std::vector<float>& pull) const {
    std::vector<double> x = halfway();
    for (int32_t round = 0; round < kRounds; ++round) {
      for (int32_t k = 0; k < size; ++k) {
        const int32_t c = round % 2 == 0 ? k : size - 1 - k;
        x[c] = std::clamp(wanted(c, x, pull), low(c, x), std::max(low(c, x), high(c, x)));
      }
    }
    return x;
  }

  // Between the centre lines at the far left and right.
  [[nodiscard]] double width() const {
    const std::vector<double> x = leftmost();
    return x.empty() ? 0 : *std::max_element(x.begin(), x.end());
  }

  [[nodiscard]] double widest_row() const {
    double widest = 0;
    double width = 0;
    size_t pair = 0;
    for (int32_t r = 0; r < g.rows; ++r, width = 0) {
      for (int32_t k = g.row_start[r]; k + 1 < g.row_start[r + 1]; ++k) width += pairs_[pair++].distance;
      widest = std::max(widest, width);
    }
    return widest;
  }

  const Layered& g;
  std::vector<int32_t> of;  // column of a vertex
  int32_t size = 0;

 private:
  struct Pair {
    int32_t a, b;  // columns, a at the left
    double distance;
  };

  // Kahn's algorithm over "stands left of", which has no cycle as aligned links do not cross.
  void number_from_left(const std::vector<int32_t>& raw, int32_t count) {
    std::vector<int32_t> waiting(count, 0);
    const auto total = static_cast<int32_t>(g.order.size());
    const auto ends_row = [&](int32_t k) { return k + 1 == g.row_start[g.row[g.order[k]] + 1]; };
    const Csr members = group(count, total, [&](int32_t k) { return raw[g.order[k]]; });
    for (int32_t k = 0; k < total; ++k) {
      if (!ends_row(k)) ++waiting[raw[g.order[k + 1]]];
    }
    std::vector<int32_t> ready;
    for (int32_t c = 0; c < count; ++c) {
      if (waiting[c] == 0) ready.push_back(c);
    }
    for (size_t i = 0; i < ready.size(); ++i) {
      for (const int32_t k : members[ready[i]]) {
        of[g.order[k]] = static_cast<int32_t>(i);
        if (!ends_row(k) && --waiting[raw[g.order[k + 1]]] == 0) ready.push_back(raw[g.order[k + 1]]);
      }
    }
  }

  [[nodiscard]] std::vector<double> leftmost() const {
    std::vector<double> x(size, 0);
    for (int32_t c = 0; c < size; ++c) {
      for (const int32_t p : by_right_[c]) x[c] = std::max(x[c], x[pairs_[p].a] + pairs_[p].distance);
    }
    return x;
  }

  [[nodiscard]] std::vector<double> halfway() const {
    std::vector<double> x = leftmost();
    const double widest = x.empty() ? 0 : *std::max_element(x.begin(), x.end());
    std::vector<double> rightmost(size, widest);
    for (int32_t c = size - 1; c >= 0; --c) {
      for (const int32_t p : by_left_[c]) {
        rightmost[c] = std::min(rightmost[c], rightmost[pairs_[p].b] - pairs_[p].distance);
      }
    }
    for (int32_t c = 0; c < size; ++c) x[c] = (x[c] + rightmost[c]) / 2;
    return x;
  }

  [[nodiscard]] double low(int32_t c, const std::vector<double>& x) const {
    double bound = -std::numeric_limits<double>::infinity();
    for (const int32_t p : by_right_[c]) bound = std::max(bound, x[pairs_[p].a] + pairs_[p].distance);
    return bound;
  }

  [[nodiscard]] double high(int32_t c, const std::vector<double>& x) const {
    double bound = std::numeric_limits<double>::infinity();
    for (const int32_t p : by_left_[c]) bound = std::min(bound, x[pairs_[p].b] - pairs_[p].distance);
    return bound;
  }

  [[nodiscard]] double wanted(int32_t c, const std::vector<double>& x, const std::vector<float>& pull) const {
    double sum = 0;
    double weights = 0;
    for (const int32_t v : members_[c]) {
      for (const Csr* side : {&g.up, &g.down}) {
        for (const int32_t l : (*side)[v]) {
          const int32_t other = side == &g.up ? g.links[l].upper : g.links[l].lower;
          if (of[other] == c) continue;
          sum += pull[l] * x[of[other]];
          weights += pull[l];
        }
      }
    }
    return weights > 0 ? sum / weights : x[c];
  }

  std::vector<Pair> pairs_;
  Csr by_right_, by_left_, members_;
};

}  // namespace

std::vector<double> place(const Layered& g, double gap_x) {
  // Tall columns that hinder each other can make a tangled graph many times as wide as its widest row: then the
  // columns are cut, down to single vertices, which need no more than that row.
  int32_t most_rows = std::numeric_limits<int32_t>::max();
  Alignment alignment(g);
  std::optional<Columns> chosen;
  for (const int32_t next : {16, 4, 1, 0}) {
    alignment.align(most_rows);
    chosen.emplace(g, alignment, gap_x);
    if (most_rows == 1 || chosen->width() <= kWidening * chosen->widest_row()) break;
    most_rows = next;
  }
  const Columns& columns = *chosen;
  std::vector<float> pull(g.links.size());
  for (size_t l = 0; l < pull.size(); ++l) {
    const bool boxes = g.is_box(g.links[l].upper) && g.is_box(g.links[l].lower);
    pull[l] = (boxes ? 4.0F : 1.0F) * std::min(8.0F, 1.0F + g.links[l].weight);
  }
  const std::vector<double> of_column = columns.solve(pull);
  std::vector<double> x(g.vertices());
  // Quarter pixels: what is straight is so exactly, also as float32.
  for (int32_t v = 0; v < g.vertices(); ++v) x[v] = std::round(of_column[columns.of[v]] * 4) / 4;
  return x;
}

}  // namespace wb::layout
