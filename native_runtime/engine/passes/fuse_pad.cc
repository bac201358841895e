// Padding with zeros before a convolution becomes padding of the convolution.
#include <algorithm>

#include "engine/passes/draft.h"

namespace wb::engine {
namespace {

// [n, h, w, c]: only rows and columns grow.
bool pads_images_with_zeros(const Node& node, const Value& x) {
  const Attributes& a = node.attributes;
  if (node.op != Op::Pad || a.pad_mode != Attributes::PadMode::Constant || a.fill != 0 || x.shape.rank != 4) {
    return false;
  }
  for (int d = 0; d < 4; ++d) {
    const bool image = d == 1 || d == 2;
    if (a.before[d] < 0 || a.after[d] < 0 || (!image && (a.before[d] != 0 || a.after[d] != 0))) return false;
  }
  return true;
}

}  // namespace

void fuse_pad(Draft& draft) {
  constexpr std::int64_t kMost = 1 << 20;
  draft.index();
  for (Node& node : draft.graph.nodes) {
    if (node.op != Op::Convolution) continue;
    const Node* pad = draft.producer(node.inputs[0]);
    if (pad == nullptr || !pads_images_with_zeros(*pad, draft.value(pad->inputs[0]))) continue;
    if (!same_quantization(draft.value(pad->inputs[0]).quantization, draft.value(pad->outputs[0]).quantization))
      continue;
    const Attributes& more = pad->attributes;
    Window window = node.attributes.window;
    std::int64_t* sides[4] = {&window.pad_top, &window.pad_bottom, &window.pad_left, &window.pad_right};
    const std::int64_t added[4] = {more.before[1], more.after[1], more.before[2], more.after[2]};
    bool fits = true;
    for (int i = 0; i < 4; ++i) {
      // A convolution that cuts rows off would cut the zeros first.
      fits = fits && *sides[i] >= 0 && added[i] < kMost && *sides[i] < kMost;
      *sides[i] += fits ? added[i] : 0;
    }
    if (!fits) continue;
    node.inputs[0] = pad->inputs[0];
    node.attributes.window = window;
    if (draft.readers(pad->outputs[0]) == 1) {
      node.sources.insert(node.sources.begin(), pad->sources.begin(), pad->sources.end());
      for (PointwiseStep& step : node.post) step.source += static_cast<std::uint32_t>(pad->sources.size());
    }
  }
  remove_dead_code(draft);
}

}  // namespace wb::engine
