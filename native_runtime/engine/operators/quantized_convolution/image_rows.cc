#include "engine/operators/quantized_convolution/image_rows.h"

#include <algorithm>

namespace wb::engine::WB_ISA::quantized {

void ImageRows::fill(std::int64_t i, int rows, DotLeft* to, std::int64_t ld) const {
  const std::int64_t row = i / g_.ow;
  const std::int64_t batch = g_.batch == 1 ? 0 : row / g_.oh;
  std::int64_t ox = i - row * g_.ow;
  std::int64_t oy = row - batch * g_.oh;
  const std::uint8_t* image = image_ + batch * g_.h * g_.w * g_.cin;
  if (joined_ && fill_inside(image, oy * g_.sh - g_.top, ox * g_.sw - g_.left, ox + rows <= g_.ow ? rows : 0, to, ld)) {
    return;
  }
  for (int r = 0; r < rows; ++r) {
    const std::int64_t iy = oy * g_.sh - g_.top;
    const std::int64_t ix = ox * g_.sw - g_.left;
    if (joined_) {
      fill_kernel_rows(image, iy, ix, to + r * ld);
    } else {
      fill_taps(image, iy, ix, to + r * ld);
    }
    if (++ox < g_.ow) continue;
    ox = 0;
    if (++oy < g_.oh) continue;
    oy = 0;
    image += g_.h * g_.w * g_.cin;
  }
}

bool ImageRows::fill_inside(const std::uint8_t* image, std::int64_t iy, std::int64_t ix, int rows, DotLeft* to,
                            std::int64_t ld) const {
  const std::int64_t kernel_rows = (g_.kh - 1) * g_.dh + 1;
  if (rows == 0 || iy < 0 || iy + kernel_rows > g_.h || ix < 0 || ix + (rows - 1) * g_.sw + g_.kw > g_.w) return false;
  const std::int64_t length = g_.kw * g_.cin;
  const std::int64_t step = g_.dh * g_.w * g_.cin;
  const std::uint8_t* from = image + (iy * g_.w + ix) * g_.cin;
  for (int r = 0; r < rows; ++r, from += g_.sw * g_.cin, to += ld) {
    for (std::int64_t ky = 0; ky < g_.kh; ++ky) copy_left(from + ky * step, length, form_.flip, to + ky * length);
  }
  return true;
}

void ImageRows::fill_kernel_rows(const std::uint8_t* image, std::int64_t iy, std::int64_t ix, DotLeft* to) const {
  const DotLeft zero = form_.stored_zero();
  const std::int64_t length = g_.kw * g_.cin;
  const std::int64_t from = std::clamp<std::int64_t>(-ix, 0, g_.kw) * g_.cin;
  const std::int64_t until = std::max(std::clamp<std::int64_t>(g_.w - ix, 0, g_.kw) * g_.cin, from);
  for (std::int64_t ky = 0; ky < g_.kh; ++ky, to += length) {
    const std::int64_t y = iy + ky * g_.dh;
    if (y < 0 || y >= g_.h) {
      fill_left(zero, length, to);
      continue;
    }
    if (from > 0) fill_left(zero, from, to);
    copy_left(image + (y * g_.w + ix) * g_.cin + from, until - from, form_.flip, to + from);
    if (until < length) fill_left(zero, length - until, to + until);
  }
}

void ImageRows::fill_taps(const std::uint8_t* image, std::int64_t iy, std::int64_t ix, DotLeft* to) const {
  const std::int64_t length = g_.cin_group();
  for (std::int64_t ky = 0; ky < g_.kh; ++ky) {
    const std::int64_t y = iy + ky * g_.dh;
    for (std::int64_t kx = 0; kx < g_.kw; ++kx, to += length) {
      const std::int64_t x = ix + kx * g_.dw;
      if (y < 0 || y >= g_.h || x < 0 || x >= g_.w) {
        fill_left(form_.stored_zero(), length, to);
      } else {
        copy_left(image + (y * g_.w + x) * g_.cin, length, form_.flip, to);
      }
    }
  }
}

}  // namespace wb::engine::WB_ISA::quantized
