// The numbers of a convolution over images [n, h, w, c].
#pragma once

#include "engine/operator.h"

namespace wb::engine::WB_ISA::dense {

struct Geometry {
  std::int64_t batch = 0, h = 0, w = 0, cin = 0;
  std::int64_t oh = 0, ow = 0, cout = 0;
  std::int64_t groups = 1;
  std::int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  std::int64_t top = 0, left = 0;  // padding; negative: rows and columns are cut

  [[nodiscard]] std::int64_t cin_group() const { return cin / groups; }
  [[nodiscard]] std::int64_t cout_group() const { return cout / groups; }
  [[nodiscard]] std::int64_t taps() const { return kh * kw; }
  [[nodiscard]] std::int64_t depth() const { return taps() * cin_group(); }
  [[nodiscard]] std::int64_t pixels() const { return batch * oh * ow; }
  // Each output pixel is made of the input pixel at its own place.
  [[nodiscard]] bool pointwise() const {
    return taps() == 1 && sh == 1 && sw == 1 && top == 0 && left == 0 && oh == h && ow == w;
  }
};

[[nodiscard]] inline Geometry geometry_of(const Node& node, const Operands& operands) {
  const Shape& x = operands.inputs[0].shape;
  const Shape& y = operands.outputs[0].shape;
  const Window& w = node.attributes.window;
  Geometry g;
  g.batch = x.sizes[0];
  g.h = x.sizes[1];
  g.w = x.sizes[2];
  g.cin = x.sizes[3];
  g.oh = y.sizes[1];
  g.ow = y.sizes[2];
  g.cout = y.sizes[3];
  g.groups = node.attributes.groups;
  g.kh = w.kernel_h;
  g.kw = w.kernel_w;
  g.sh = w.stride_h;
  g.sw = w.stride_w;
  g.dh = w.dilation_h;
  g.dw = w.dilation_w;
  g.top = w.pad_top;
  g.left = w.pad_left;
  return g;
}

}  // namespace wb::engine::WB_ISA::dense
