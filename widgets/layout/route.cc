#include "route.h"

#include <algorithm>
#include <cmath>

#include "lanes.h"
#include "ports.h"
#include "sort.h"
#include "tracks.h"

namespace wb::layout {
namespace {

constexpr double kTrack = 8;         // px between tracks
constexpr double kTallestGap = 512;  // px that tracks may ask for
constexpr double kLoop = 6;          // px that an edge to itself goes above and below its box

// One vertical part in a gap. Gap r lies above row r; the last one below all rows.
struct Touch {
  int32_t gap, net;
  double x;
  bool above;
};

struct Run {  // of a net in a gap
  int32_t gap, net, track;
};

class Router {
 public:
  Router(const Layered& graph, Places& p, const Options& o)
      : g(graph),
        places(p),
        options(o),
        fixed(!p.y.empty()),
        lanes(choose_lanes(graph, p.x, o.gap_x, fixed ? p.wall : -std::numeric_limits<double>::infinity())) {
    if (!fixed) move_to_margin();
    ports = choose_ports(g, places.x, lanes);
    collect_touches();
    find_tracks();
    if (!fixed) stack_rows();
  }

  void write(Output& out) const {
    const auto n = static_cast<size_t>(g.boxes);
    out.x.resize(n);
    out.y.resize(n);
    for (size_t i = 0; i < n; ++i) {
      out.x[i] = static_cast<float>(places.x[i] - g.left[i]);
      out.y[i] = static_cast<float>(places.y[i]);
    }
    const auto [right, bottom] = extent();
    out.width = static_cast<float>(right + options.margin);
    out.height = static_cast<float>(bottom + (g.ports_below ? 0.0 : options.margin));
    out.edge_start.assign(1, 0);
    out.points.clear();
    std::vector<Point> line;
    for (int32_t e = 0; e < static_cast<int32_t>(g.from.size()); ++e) {
      line.clear();
      trace(e, line);
      append(line, out.points);
      out.edge_start.push_back(static_cast<int32_t>(out.points.size() / 2));
    }
  }

 private:
  struct Point {
    double x, y;
  };

  void move_to_margin() {
    double least = std::numeric_limits<double>::infinity();
    for (int32_t v = 0; v < g.vertices(); ++v) least = std::min(least, places.x[v] - g.left[v]);
    for (const Lane& lane : lanes.all) least = std::min(least, lane.x);
    if (g.vertices() == 0) return;
    const double shift = std::ceil((options.margin - least) * 4) / 4;
    for (double& x : places.x) x += shift;
    for (Lane& lane : lanes.all) lane.x += shift;
  }

  void touch(int32_t gap, int32_t net, double x, bool above) { touches_.push_back({gap, net, x, above}); }

  void collect_touches() {
    for (size_t l = 0; l < g.links.size(); ++l) {
      const auto& [upper, lower, weight] = g.links[l];
      if (ports.exit[upper] == ports.link_end[l] && g.down[upper].size() == 1) continue;  // straight, and alone
      touch(g.row[lower], g.net[upper], ports.exit[upper], true);
      touch(g.row[lower], g.net[upper], ports.link_end[l], false);
    }
    for (int32_t e = 0; e < static_cast<int32_t>(g.from.size()); ++e) {
      if (lanes.of[e] < 0) continue;
      const Lane& lane = lanes.all[lanes.of[e]];
      const int32_t below = g.row[lane.net] + 1;
      touch(below, lane.net, ports.exit[lane.net], true);
      touch(below, lane.net, lane.x, lane.upward);
      touch(g.row[g.to[e]], lane.net, lane.x, !lane.upward);
      touch(g.row[g.to[e]], lane.net, ports.lane_end[e], false);
    }
    stable_sort(touches_, [](const Touch& a, const Touch& b) {
      if (a.gap != b.gap) return a.gap < b.gap;
      return a.net != b.net ? a.net < b.net : a.x < b.x;
    });
  }

  void find_tracks() {
    in_gap_.assign(g.rows + 1, 0);
    std::vector<Segment> segments;
    std::vector<int32_t> run_of;
    const auto finish = [&](int32_t gap) {
      const Tracks tracks = assign_tracks(segments);
      for (size_t s = 0; s < segments.size(); ++s) runs_[run_of[s]].track = tracks.of[s];
      in_gap_[gap] = tracks.count;
      segments.clear();
      run_of.clear();
    };
    for (size_t i = 0; i < touches_.size();) {
      Segment segment;
      const Touch& first = touches_[i];
      for (; i < touches_.size() && touches_[i].gap == first.gap && touches_[i].net == first.net; ++i) {
        (touches_[i].above ? segment.above : segment.below).push_back(touches_[i].x);
      }
      segment.low = first.x;
      segment.high = touches_[i - 1].x;
      if (segment.low < segment.high) {
        run_of.push_back(static_cast<int32_t>(runs_.size()));
        runs_.push_back({first.gap, first.net, 0});
        segments.push_back(std::move(segment));
      }
      if (i == touches_.size() || touches_[i].gap != first.gap) finish(first.gap);
    }
  }

  double gap_height(int32_t gap) const {
    return std::max<double>(options.gap_y, std::min((in_gap_[gap] + 1) * kTrack, kTallestGap));
  }

  void stack_rows() {
    places.y.assign(g.boxes, 0);
    places.row_top.assign(g.rows, 0);
    places.row_bottom.assign(g.rows, 0);
    std::vector<double> tallest(g.rows, 0);
    for (int32_t i = 0; i < g.boxes; ++i) tallest[g.row[i]] = std::max(tallest[g.row[i]], g.height[i]);
    // A row of ports lies on the border itself.
    double y = g.ports_above ? 0 : options.margin + (in_gap_[0] > 0 ? gap_height(0) : 0);
    for (int32_t r = 0; r < g.rows; ++r) {
      if (r > 0) y += std::ceil(gap_height(r));
      places.row_top[r] = y;
      y += std::ceil(tallest[r]);
      places.row_bottom[r] = y;
    }
    // Boxes of a row share their top: from this the rows are found again when the boxes come back as anchors.
    for (int32_t i = 0; i < g.boxes; ++i) places.y[i] = places.row_top[g.row[i]];
  }

  double track_y(int32_t gap, int32_t net) const {
    const auto run = std::lower_bound(runs_.begin(), runs_.end(), std::pair(gap, net),
                                      [](const Run& a, const auto& b) { return std::pair(a.gap, a.net) < b; });
    double height = gap_height(gap);
    if (fixed && gap == 0 && places.row_top[0] > 0) height = std::min(height, places.row_top[0]);
    const double top = gap > 0 ? places.row_bottom[gap - 1] : places.row_top[0] - height;
    const double bottom = gap < g.rows ? places.row_top[gap] : places.row_bottom[g.rows - 1] + height;
    return top + (bottom - top) * (run->track + 1) / (in_gap_[gap] + 1);
  }

  double bottom_of(int32_t v) const { return g.is_box(v) ? places.y[v] + g.height[v] : places.row_bottom[g.row[v]]; }
  double top_of(int32_t v) const { return g.is_box(v) ? places.y[v] : places.row_top[g.row[v]]; }

  void step(std::vector<Point>& line, int32_t gap, int32_t net, double x) const {
    const double before = line.back().x;
    if (before == x) return;
    const double y = track_y(gap, net);
    line.push_back({before, y});
    line.push_back({x, y});
  }

  void trace(int32_t e, std::vector<Point>& line) const {
    const int32_t source = g.from[e];
    const int32_t target = g.to[e];
    if (g.course[e] == Course::kLoop) return trace_loop(source, line);
    line.push_back({ports.exit[source], bottom_of(source)});
    if (g.course[e] == Course::kLane) {
      step(line, g.row[source] + 1, source, lanes.all[lanes.of[e]].x);
      step(line, g.row[target], source, ports.lane_end[e]);
    } else {
      std::vector<int32_t> chain;
      for (int32_t v = g.links[g.last[e]].upper; v != source; v = g.above[v]) chain.push_back(v);
      for (auto v = chain.rbegin(); v != chain.rend(); ++v) step(line, g.row[*v], source, places.x[*v]);
      step(line, g.row[target], source, ports.link_end[g.last[e]]);
    }
    line.push_back({line.back().x, top_of(target)});
  }

  // Out at the bottom, around the right side, in at the top.
  void trace_loop(int32_t v, std::vector<Point>& line) const {
    const double x = places.x[v] + g.left[v] * 0.75;
    const double outside = places.x[v] + (g.left[v] + g.right[v]) / 2;
    const int32_t r = g.row[v];
    const double room_above = r > 0 ? places.row_top[r] - places.row_bottom[r - 1] : places.row_top[r];
    const double room_below = r + 1 < g.rows ? places.row_top[r + 1] - places.row_bottom[r] : options.margin;
    const double top = top_of(v);
    const double bottom = bottom_of(v);
    const double up = std::clamp(room_above / 2, 0.0, kLoop);
    const double down = std::clamp(room_below / 2, 0.0, kLoop);
    line.assign(
        {{x, bottom}, {x, bottom + down}, {outside, bottom + down}, {outside, top - up}, {x, top - up}, {x, top}});
  }

  // Leaves out points on a straight line; two always stay.
  static void append(const std::vector<Point>& line, std::vector<float>& points) {
    for (size_t i = 0; i < line.size(); ++i) {
      const bool inner = i > 0 && i + 1 < line.size();
      if (inner && ((line[i - 1].x == line[i].x && line[i].x == line[i + 1].x) ||
                    (line[i - 1].y == line[i].y && line[i].y == line[i + 1].y))) {
        continue;
      }
      points.push_back(static_cast<float>(line[i].x));
      points.push_back(static_cast<float>(line[i].y));
    }
  }

  Point extent() const {
    Point most{options.margin, g.rows > 0 ? places.row_bottom[g.rows - 1] : options.margin};
    for (int32_t v = 0; v < g.vertices(); ++v) most.x = std::max(most.x, places.x[v] + g.right[v]);
    for (const Lane& lane : lanes.all) most.x = std::max(most.x, lane.x);
    if (in_gap_[g.rows] > 0) most.y += gap_height(g.rows);
    return most;
  }

  const Layered& g;
  Places& places;
  const Options& options;
  const bool fixed;
  Lanes lanes;
  Ports ports;
  std::vector<Touch> touches_;
  std::vector<Run> runs_;        // sorted by gap, then net
  std::vector<int32_t> in_gap_;  // tracks of each gap
};

}  // namespace

void route(const Layered& g, Places& places, const Options& options, Output& output) {
  Router(g, places, options).write(output);
}

}  // namespace wb::layout
