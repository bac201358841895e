#include "kernels/convolution/slab.h"

#include <algorithm>
#include <cstring>

namespace wb::kernels::WB_ISA {
namespace {

// Elements [first, last) of run p lie inside the input.
struct Inside {
  std::int64_t first, last;
};

Inside inside_of(const ConvGeometry& g, const Slab& slab, std::int64_t phase) {
  const std::int64_t before = g.pw - phase;  // columns of padding before the first of this phase
  const std::int64_t first = before <= 0 ? 0 : (before + g.sw - 1) / g.sw;
  const std::int64_t end = g.w + before;
  const std::int64_t last = end <= 0 ? 0 : (end + g.sw - 1) / g.sw;
  return {std::min(first, slab.run), std::clamp(last, std::min(first, slab.run), slab.run)};
}

template <typename T>
void copy_strided(const T* from, std::int64_t step, std::int64_t n, T* to) {
  if (step == 1) {
    if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else if (step == 2) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  }
}

// One row of the input, all channels: those that stand next to each other in memory are read together.
template <typename T>
void fill_row(const ConvGeometry& g, const Slab& slab, std::int64_t channels, const T* from, T* to) {
  constexpr std::int64_t kTogether = 16;
  const std::int64_t together = g.in.c < g.in.w ? kTogether : 1;
  for (std::int64_t p = 0; p < slab.phases; ++p) {
    const Inside inside = inside_of(g, slab, p);
    const T* source = from + (inside.first * g.sw + p - g.pw) * g.in.w;
    const std::int64_t n = inside.last - inside.first;
    for (std::int64_t c0 = 0; c0 < channels; c0 += together) {
      const std::int64_t c1 = std::min(c0 + together, channels);
      for (std::int64_t c = c0; c < c1; ++c) {
        T* run = to + c * slab.plane + p * slab.run;
        std::fill(run, run + inside.first, T{0});
        std::fill(run + inside.last, run + slab.run, T{0});
        if (together == 1) copy_strided(source + c * g.in.c, g.sw * g.in.w, n, run + inside.first);
      }
      if (together == 1) continue;
      for (std::int64_t i = 0; i < n; ++i) {
        const T* pixel = source + i * g.sw * g.in.w;
        T* target = to + p * slab.run + inside.first + i;
        for (std::int64_t c = c0; c < c1; ++c) target[c * slab.plane] = pixel[c * g.in.c];
      }
    }
  }
}

}  // namespace

bool plan_slab(const ConvGeometry& g, std::int64_t channels, std::int64_t limit, Slab* slab) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  slab->phases = g.kw == 1 ? 1 : std::min(g.sw, g.dw * (g.kw - 1) + 1);
  slab->run = g.ow + (g.kw - 1) * g.dw / g.sw;
  slab->row = slab->phases * slab->run;
  slab->row_step = g.kh == 1 ? 1 : g.sh;
  const std::int64_t taps_rows = (g.kh - 1) * g.dh + 1;
  std::int64_t one = 0;
  std::int64_t least = 0;
  if (__builtin_mul_overflow(channels, slab->row, &one) || __builtin_mul_overflow(one, taps_rows, &least)) return false;
  if (least > kMost || slab->row > kMost) return false;
  slab->block = 1;
  if (one > 0 && limit / one > taps_rows) slab->block += (limit / one - taps_rows) / slab->row_step;
  slab->block = std::min(slab->block, std::max<std::int64_t>(g.oh, 1));
  const std::int64_t blocks = (g.oh + slab->block - 1) / slab->block;
  if (blocks > 0) slab->block = (g.oh + blocks - 1) / blocks;  // blocks of equal size
  slab->rows = slab->rows_of(g, slab->block);
  slab->plane = slab->rows * slab->row;
  return true;
}

template <typename T>
void fill_slab(const ConvGeometry& g, const Slab& slab, std::int64_t channels, std::int64_t oy, std::int64_t out_rows,
               const T* input, T* to) {
  const std::int64_t rows = slab.rows_of(g, out_rows);
  const std::int64_t step = g.kh == 1 ? g.sh : 1;  // input rows from one slab row to the next
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t y = oy * g.sh - g.ph + r * step;
    T* row = to + r * slab.row;
    if (y >= 0 && y < g.h) {
      fill_row(g, slab, channels, input + y * g.in.h, row);
    } else {
      for (std::int64_t c = 0; c < channels; ++c) {
        std::fill(row + c * slab.plane, row + c * slab.plane + slab.row, T{0});
      }
    }
  }
}

template void fill_slab<float>(const ConvGeometry&, const Slab&, std::int64_t, std::int64_t, std::int64_t, const float*,
                               float*);
template void fill_slab<double>(const ConvGeometry&, const Slab&, std::int64_t, std::int64_t, std::int64_t,
                                const double*, double*);

extern const KernelTable table_convolution_slab;
const KernelTable table_convolution_slab = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
