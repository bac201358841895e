#include <cmath>

#include "layout.h"

namespace wb::layout {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;
constexpr float kLargestBox = 1e6F;
constexpr float kFarthest = 1e7F;  // beyond it a float no longer tells two pixels apart

// False for NaN.
bool within(float value, float low, float high) { return value >= low && value <= high; }

Status check_options(const Options& options) {
  if (!within(options.gap_x, 0, 1e4F)) return {Fault::kGapX};
  if (!within(options.gap_y, 0, 1e4F)) return {Fault::kGapY};
  if (!within(options.margin, 0, 1e4F)) return {Fault::kMargin};
  if (options.sweeps < 0 || options.sweeps > 1000) return {Fault::kSweeps};
  if (options.max_span < 1 || options.max_span > 1000) return {Fault::kMaxSpan};
  return {};
}

}  // namespace

const char* describe(Fault fault) {
  switch (fault) {
    case Fault::kNone: return "no fault";
    case Fault::kTooMany: return "there may be at most 16777216 boxes and as many edges";
    case Fault::kSizes: return "columns of boxes must have one length, and columns of edges must have one length";
    case Fault::kWidth: return "a box's width must be a number from 0 to 1e6 px";
    case Fault::kHeight: return "a box's height must be a number from 0 to 1e6 px";
    case Fault::kSource: return "an edge's source must be a box's index, or -1 for the top border";
    case Fault::kTarget: return "an edge's target must be a box's index, or -1 for the bottom border";
    case Fault::kWeight: return "an edge's weight must not be negative";
    case Fault::kAnchor: return "an anchor must be NaN, or a number from -1e7 to 1e7 px";
    case Fault::kGapX: return "gap_x must be a number from 0 to 10000 px";
    case Fault::kGapY: return "gap_y must be a number from 0 to 10000 px";
    case Fault::kMargin: return "margin must be a number from 0 to 10000 px";
    case Fault::kSweeps: return "sweeps must be from 0 to 1000";
    case Fault::kMaxSpan: return "max_span must be from 1 to 1000";
  }
  return "unknown fault";
}

Status check(const Input& input) {
  const size_t n = input.width.size();
  const size_t m = input.src.size();
  if (static_cast<int64_t>(n) > kMost || static_cast<int64_t>(m) > kMost) return {Fault::kTooMany};
  const bool anchored = !input.anchor_x.empty() || !input.anchor_y.empty();
  if (input.height.size() != n || input.dst.size() != m || input.weight.size() != m ||
      (anchored && (input.anchor_x.size() != n || input.anchor_y.size() != n))) {
    return {Fault::kSizes};
  }
  for (size_t i = 0; i < n; ++i) {
    const auto index = static_cast<int32_t>(i);
    if (!within(input.width[i], 0, kLargestBox)) return {Fault::kWidth, index};
    if (!within(input.height[i], 0, kLargestBox)) return {Fault::kHeight, index};
    for (const auto& anchor : {input.anchor_x, input.anchor_y}) {
      if (anchored && !std::isnan(anchor[i]) && !within(anchor[i], -kFarthest, kFarthest)) {
        return {Fault::kAnchor, index};
      }
    }
  }
  for (size_t e = 0; e < m; ++e) {
    const auto index = static_cast<int32_t>(e);
    if (input.src[e] < -1 || input.src[e] >= static_cast<int32_t>(n)) return {Fault::kSource, index};
    if (input.dst[e] < -1 || input.dst[e] >= static_cast<int32_t>(n)) return {Fault::kTarget, index};
    if (input.weight[e] < 0) return {Fault::kWeight, index};
  }
  return check_options(input.options);
}

}  // namespace wb::layout
