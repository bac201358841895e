#include "engine/passes/segments.h"

#include <bit>

namespace wb::engine {

bool segments_of(const Value& in, const Node& reshape, const Value& out, std::vector<Segment>* segments) {
  segments->clear();
  int i = 0;
  int j = 0;
  const auto in_dynamic = [&](int d) { return (in.dynamic >> d & 1U) != 0; };
  const auto out_dynamic = [&](int d) { return (out.dynamic >> d & 1U) != 0; };
  while (i < in.shape.rank && j < out.shape.rank) {
    Segment segment{i, i + 1, j, j + 1};
    if (in_dynamic(i) || out_dynamic(j)) {
      const SizeRule& rule = reshape.attributes.sizes[j];
      // The only dynamic dimensions of both sides, with the same bound, are the same: so are all other elements.
      const bool only = std::popcount(in.dynamic) == 1 && std::popcount(out.dynamic) == 1 && in_dynamic(i) &&
                        out_dynamic(j) && in.shape.sizes[i] == out.shape.sizes[j];
      if (!only && (rule.from_input != i || rule.value > 1)) return false;
    } else {
      std::int64_t a = in.shape.sizes[i];
      std::int64_t b = out.shape.sizes[j];
      while (a != b) {
        const bool more_in = a < b;
        const int next = more_in ? segment.in_end : segment.out_end;
        if (next >= (more_in ? in.shape.rank : out.shape.rank)) return false;
        if (more_in ? in_dynamic(next) : out_dynamic(next)) return false;
        (more_in ? a : b) *= more_in ? in.shape.sizes[next] : out.shape.sizes[next];
        ++(more_in ? segment.in_end : segment.out_end);
        if (a == 0 || b == 0) return false;
      }
    }
    i = segment.in_end;
    j = segment.out_end;
    segments->push_back(segment);
  }
  // Ones at the end belong to the last piece.
  for (; i < in.shape.rank; ++i) {
    if (segments->empty() || in_dynamic(i) || in.shape.sizes[i] != 1) return false;
    segments->back().in_end = i + 1;
  }
  for (; j < out.shape.rank; ++j) {
    if (segments->empty() || out_dynamic(j) || out.shape.sizes[j] != 1) return false;
    segments->back().out_end = j + 1;
  }
  return true;
}

}  // namespace wb::engine
