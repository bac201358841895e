#include "engine/operators/convolution/image_rows.h"

#include <algorithm>

namespace wb::engine::WB_ISA::dense {
namespace {

// May write up to a vector past the end: what follows is written later.
[[gnu::always_inline]] inline void copy_run(const float* from, std::int64_t n, float* to) {
  std::int64_t j = 0;
  for (; j + kWidth <= n; j += kWidth) simd::store(to + j, simd::load(from + j));
  if (j < n) simd::store(to + j, simd::load_first(from + j, static_cast<int>(n - j)));
}
[[gnu::always_inline]] inline void zero_run(std::int64_t n, float* to) {
  for (std::int64_t j = 0; j < n; j += kWidth) simd::store(to + j, Vector{});
}

}  // namespace

ImageRows::ImageRows(const Geometry& geometry, const float* image, std::int64_t group)
    : g_(geometry), image_(image + group * geometry.cin_group()), joined_(geometry.groups == 1 && geometry.dw == 1) {}

std::int64_t ImageRows::period() const {
  constexpr std::int64_t kFewest = kTileRows / 2;  // rows of a tile that are worth it
  const std::int64_t tiles = (g_.ow + kTileRows - 1) / kTileRows;
  return joined_ && g_.depth() <= kBlockK && g_.ow >= tiles * kFewest ? g_.ow : 0;
}

bool ImageRows::place(std::int64_t i, int rows, Tile* tile) const {
  const std::int64_t iy = i / g_.ow % g_.oh * g_.sh - g_.top;
  const std::int64_t ix = i % g_.ow * g_.sw - g_.left;
  if (iy < 0 || iy + (g_.kh - 1) * g_.dh >= g_.h || ix < 0 || ix + (rows - 1) * g_.sw + g_.kw > g_.w) return false;
  tile->a = image_ + ((i / g_.ow / g_.oh * g_.h + iy) * g_.w + ix) * g_.cin;
  tile->lda = g_.sw * g_.cin;
  tile->k = g_.kw * g_.cin;
  tile->runs = g_.kh;
  tile->a_step = g_.dh * g_.w * g_.cin;
  return true;
}

void ImageRows::fill(std::int64_t i, int rows, std::int64_t k0, std::int64_t kc, float* to, std::int64_t ld) const {
  std::int64_t ox = i % g_.ow;
  std::int64_t oy = i / g_.ow % g_.oh;
  const float* image = image_ + i / g_.ow / g_.oh * g_.h * g_.w * g_.cin;
  for (int r = 0; r < rows; ++r) {
    const std::int64_t iy = oy * g_.sh - g_.top;
    const std::int64_t ix = ox * g_.sw - g_.left;
    if (joined_) {
      fill_kernel_rows(image, iy, ix, k0, kc, to + r * ld);
    } else {
      fill_taps(image, iy, ix, k0, kc, to + r * ld);
    }
    if (++ox < g_.ow) continue;
    ox = 0;
    if (++oy < g_.oh) continue;
    oy = 0;
    image += g_.h * g_.w * g_.cin;
  }
}

void ImageRows::fill_kernel_rows(const float* image, std::int64_t iy, std::int64_t ix, std::int64_t k0, std::int64_t kc,
                                 float* to) const {
  const std::int64_t length = g_.kw * g_.cin;
  const std::int64_t inside_from = std::clamp<std::int64_t>(-ix, 0, g_.kw) * g_.cin;
  const std::int64_t inside_to = std::max(std::clamp<std::int64_t>(g_.w - ix, 0, g_.kw) * g_.cin, inside_from);
  std::int64_t ky = k0 / length;
  std::int64_t begin = k0 - ky * length;
  while (kc > 0) {
    const std::int64_t end = std::min(begin + kc, length);
    const std::int64_t y = iy + ky * g_.dh;
    if (y < 0 || y >= g_.h) {
      zero_run(end - begin, to);
    } else {
      const std::int64_t from = std::clamp(inside_from, begin, end);
      const std::int64_t until = std::clamp(inside_to, begin, end);
      if (from > begin) zero_run(from - begin, to);
      copy_run(image + (y * g_.w + ix) * g_.cin + from, until - from, to + (from - begin));
      if (until < end) zero_run(end - until, to + (until - begin));
    }
    to += end - begin;
    kc -= end - begin;
    begin = 0;
    ++ky;
  }
}

void ImageRows::fill_taps(const float* image, std::int64_t iy, std::int64_t ix, std::int64_t k0, std::int64_t kc,
                          float* to) const {
  const std::int64_t length = g_.cin_group();
  std::int64_t tap = k0 / length;
  std::int64_t begin = k0 - tap * length;
  std::int64_t ky = tap / g_.kw;
  std::int64_t kx = tap % g_.kw;
  while (kc > 0) {
    const std::int64_t end = std::min(begin + kc, length);
    const std::int64_t y = iy + ky * g_.dh;
    const std::int64_t x = ix + kx * g_.dw;
    if (y < 0 || y >= g_.h || x < 0 || x >= g_.w) {
      zero_run(end - begin, to);
    } else {
      copy_run(image + (y * g_.w + x) * g_.cin + begin, end - begin, to);
    }
    to += end - begin;
    kc -= end - begin;
    begin = 0;
    if (++kx == g_.kw) {
      kx = 0;
      ++ky;
    }
  }
}

}  // namespace wb::engine::WB_ISA::dense
