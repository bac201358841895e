// The phases of a transposed convolution: output pixels whose places have the same remainders modulo the strides are
// made of the same taps, so that they are a convolution of stride 1 (with negative dilation) of the input with these
// taps. Nothing is scattered: every output pixel is written once.
#pragma once

#include <algorithm>
#include <numeric>

#include "engine/operators/convolution/geometry.h"

namespace wb::engine::WB_ISA::dense {

// Along one axis: taps tap, tap + step, ... and the outputs first, first + stride, ... that they make.
struct PhaseAxis {
  std::int64_t tap = 0, step = 1, taps = 0;
  std::int64_t first = 0, count = 0;
  std::int64_t before = 0, dilation = 1;  // of the convolution of stride 1

  PhaseAxis(std::int64_t phase, std::int64_t kernel, std::int64_t stride, std::int64_t dilate, std::int64_t pad,
            std::int64_t out)
      : tap(phase), step(step_of(stride, dilate)), taps((kernel - phase + step - 1) / step) {
    first = ((phase * dilate - pad) % stride + stride) % stride;
    count = out > first ? (out - first + stride - 1) / stride : 0;
    before = -((first + pad - phase * dilate) / stride);
    dilation = -(step * dilate / stride);
  }
  static std::int64_t step_of(std::int64_t stride, std::int64_t dilate) { return stride / std::gcd(stride, dilate); }
  // Phases that have taps; pixels of others are empty sums.
  static std::int64_t phases(std::int64_t kernel, std::int64_t stride, std::int64_t dilate) {
    return std::min(kernel, step_of(stride, dilate));
  }
};

struct Phases {
  const Geometry& g;
  std::int64_t rows, columns;

  explicit Phases(const Geometry& geometry)
      : g(geometry), rows(PhaseAxis::phases(g.kh, g.sh, g.dh)), columns(PhaseAxis::phases(g.kw, g.sw, g.dw)) {}
  [[nodiscard]] std::int64_t count() const { return rows * columns; }
  [[nodiscard]] PhaseAxis y(std::int64_t phase) const { return {phase / columns, g.kh, g.sh, g.dh, g.top, g.oh}; }
  [[nodiscard]] PhaseAxis x(std::int64_t phase) const { return {phase % columns, g.kw, g.sw, g.dw, g.left, g.ow}; }

  // Calls f with each output pixel that no tap reaches.
  template <typename F>
  void for_unreached(F&& f) const {
    if (rows == g.sh && columns == g.sw) return;
    for (std::int64_t oy = 0; oy < g.oh; ++oy) {
      const bool row = reached(oy + g.top, rows, g.sh, g.dh);
      for (std::int64_t ox = 0; ox < g.ow; ++ox) {
        if (row && reached(ox + g.left, columns, g.sw, g.dw)) continue;
        for (std::int64_t n = 0; n < g.batch; ++n) f((n * g.oh + oy) * g.ow + ox);
      }
    }
  }

 private:
  static bool reached(std::int64_t at, std::int64_t phases, std::int64_t stride, std::int64_t dilation) {
    for (std::int64_t phase = 0; phase < phases; ++phase) {
      if ((at - phase * dilation) % stride == 0) return true;
    }
    return false;
  }
};

// The convolution that a phase of one image is.
[[nodiscard]] inline Geometry plain_convolution(const Geometry& g, const PhaseAxis& y, const PhaseAxis& x) {
  Geometry plain = g;
  plain.batch = 1;
  plain.oh = y.count;
  plain.ow = x.count;
  plain.kh = y.taps;
  plain.kw = x.taps;
  plain.sh = plain.sw = 1;
  plain.dh = y.dilation;
  plain.dw = x.dilation;
  plain.top = y.before;
  plain.left = x.before;
  return plain;
}

}  // namespace wb::engine::WB_ISA::dense
