// The layered graph between rows: boxes, ports at the borders, dummies, and links from one row to the next.
//
// What a box produces is one net: all edges out of it share one chain of dummies and one lane, and branch where they
// must (one tensor, many consumers). Each edge from the top border is a net of its own. An edge over more than
// `max_span` rows gets no dummies but a lane at the side; the span shrinks further when the dummies would exceed a
// bound proportional to boxes plus edges.
#pragma once

#include <cstdint>
#include <vector>

#include "csr.h"
#include "layout.h"

namespace wb::layout {

enum class Kind : uint8_t { kBox, kPort, kDummy };
enum class Course : uint8_t {
  kChain,  // down through the links
  kLane,   // at the side, down or up
  kLoop,   // from a box to itself
};

struct Link {
  int32_t upper, lower;  // vertices of neighbouring rows
  float weight;
};

struct Layered {
  int32_t boxes = 0, rows = 0;

  // Vertices: the boxes in their order, then ports, then dummies.
  std::vector<Kind> kind;
  std::vector<int32_t> row;
  std::vector<int32_t> net;                 // the vertex that produces; for a port below: the producer that it shows
  std::vector<int32_t> above;               // of a dummy: the vertex of its net in the row above; else -1
  std::vector<int32_t> component;           // connected piece, numbered by its first box
  std::vector<double> left, right, height;  // extent from the vertex's centre line to both sides, px
  bool ports_above = false, ports_below = false;

  std::vector<Link> links;
  Csr down, up;  // links by upper and by lower vertex

  std::vector<Course> course;             // of each edge
  std::vector<int32_t> from, to;          // vertices of each edge
  std::vector<int32_t> last;              // of a chained edge: the link into its target
  std::vector<int32_t> row_start, order;  // vertices row by row, from left to right
  std::vector<int32_t> position;          // of a vertex in its row

  [[nodiscard]] int32_t vertices() const { return static_cast<int32_t>(kind.size()); }
  [[nodiscard]] bool is_box(int32_t v) const { return kind[v] == Kind::kBox; }
  // Free space between two neighbours of a row, px: lines stand closer than boxes.
  [[nodiscard]] double gap(int32_t a, int32_t b, double gap_x) const {
    return gap_x * (is_box(a) && is_box(b) ? 1.0 : is_box(a) || is_box(b) ? 0.75 : 0.5);
  }
};

// `row` is of the boxes alone; ports add a row above and below. The order in each row is by vertex number.
[[nodiscard]] Layered build(const Input& input, const std::vector<int32_t>& row);

}  // namespace wb::layout
