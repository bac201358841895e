// Convolutions with one input channel a group.
#include <algorithm>

#include "kernels/convolution/methods.h"
#include "kernels/simd.h"

namespace wb::kernels::WB_ISA {
namespace {

template <typename T>
struct Taps {
  const T* weights;
  const std::int64_t* offsets;
  std::int64_t count;
};

// to[j] = bias + sum over t of weights[t] from[offsets[t] + j]; reads (not writes) past n up to a whole vector. Count
// is the number of taps if it is known to the compiler, else 0.
template <typename T, int Count>
void row_sums(const Taps<T>& taps, T bias, const T* from, std::int64_t n, T* to) {
  const std::int64_t count = Count != 0 ? Count : taps.count;
  for (std::int64_t j = 0; j < n; j += kLanes<T>) {
    Vec<T> acc = splat(bias);
#pragma GCC unroll 9
    for (std::int64_t t = 0; t < count; ++t) {
      acc = fma(splat(taps.weights[t]), load(from + taps.offsets[t] + j), acc);
    }
    const std::int64_t left = n - j;
    if (left >= kLanes<T>) {
      store(to + j, acc);
    } else {
      store_first(to + j, acc, static_cast<int>(left));
    }
  }
}

template <typename T>
void channel_rows(const ConvGeometry& g, const Slab& slab, const Taps<T>& taps, T bias, std::int64_t rows,
                  const T* from, T* row_buffer, T* to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* row = to + r * g.out.h;
    T* target = g.out.w == 1 ? row : row_buffer;
    const T* source = from + r * slab.row_step * slab.row;
    if (taps.count == 9) {
      row_sums<T, 9>(taps, bias, source, g.ow, target);
    } else {
      row_sums<T, 0>(taps, bias, source, g.ow, target);
    }
    if (target == row) continue;
    for (std::int64_t x = 0; x < g.ow; ++x) row[x * g.out.w] = row_buffer[x];
  }
}

// Range of kernel positions k with 0 <= start + k dilation < size.
struct Valid {
  std::int64_t first, last;
  Valid(std::int64_t start, std::int64_t dilation, std::int64_t kernel, std::int64_t size) {
    first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    last = start >= size ? 0 : std::min(kernel, (size - 1 - start) / dilation + 1);
  }
};

template <typename T>
void channel_pixel(const ConvGeometry& g, const Valid& y, const Valid& x, const T* from, const T* weights,
                   const T* bias, T* to) {
  const std::int64_t channels = g.cin;
  const auto sum = [&](std::int64_t c, auto load_part) {
    Vec<T> acc = bias == nullptr ? Vec<T>{} : load_part(bias + c);
    for (std::int64_t ky = y.first; ky < y.last; ++ky) {
      for (std::int64_t kx = x.first; kx < x.last; ++kx) {
        acc = fma(load_part(weights + (ky * g.kw + kx) * channels + c),
                  load_part(from + ky * g.dh * g.in.h + kx * g.dw * g.in.w + c), acc);
      }
    }
    return acc;
  };
  std::int64_t c = 0;
  for (; c + kLanes<T> <= channels; c += kLanes<T>) store(to + c, sum(c, [](const T* p) { return load(p); }));
  if (c == channels) return;
  const auto rest = static_cast<int>(channels - c);
  store_first(to + c, sum(c, [rest](const T* p) { return load_first(p, rest); }), rest);
}

}  // namespace

template <typename T>
void depthwise_convolution(const ConvGeometry& g, const Slab& slab, const ConvData<T>& data, std::byte* scratch) {
  auto* const offsets = reinterpret_cast<std::int64_t*>(scratch);
  T* const row_buffer =
      reinterpret_cast<T*>(scratch + round_scratch(static_cast<std::size_t>(g.taps()) * sizeof(std::int64_t)));
  T* const slab_data = row_buffer + round_scratch(static_cast<std::size_t>(g.ow) * sizeof(T)) / sizeof(T);
  for (std::int64_t t = 0; t < g.taps(); ++t) offsets[t] = slab.tap(g, t / g.kw, t % g.kw);
  const std::int64_t multiplier = g.cout_group();
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t c = 0; c < g.cin; ++c) {
      for (std::int64_t oy = 0; oy < g.oh; oy += slab.block) {
        const std::int64_t rows = std::min(slab.block, g.oh - oy);
        fill_slab(g, slab, 1, oy, rows, data.input + n * g.in.n + c * g.in.c, slab_data);
        for (std::int64_t k = 0; k < multiplier; ++k) {
          const std::int64_t co = c * multiplier + k;
          const Taps<T> taps{data.weight + co * g.taps(), offsets, g.taps()};
          channel_rows(g, slab, taps, data.bias == nullptr ? T{0} : data.bias[co], rows, slab_data, row_buffer,
                       data.out + n * g.out.n + co * g.out.c + oy * g.out.h);
        }
      }
    }
  }
}

template <typename T>
void depthwise_channels_convolution(const ConvGeometry& g, const ConvData<T>& data, std::byte* scratch) {
  T* const weights = reinterpret_cast<T*>(scratch);  // [tap][channel]
  for (std::int64_t c = 0; c < g.cin; ++c) {
    for (std::int64_t t = 0; t < g.taps(); ++t) weights[t * g.cin + c] = data.weight[c * g.taps() + t];
  }
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t oy = 0; oy < g.oh; ++oy) {
      const std::int64_t iy = oy * g.sh - g.ph;
      const Valid y(iy, g.dh, g.kh, g.h);
      for (std::int64_t ox = 0; ox < g.ow; ++ox) {
        const std::int64_t ix = ox * g.sw - g.pw;
        channel_pixel(g, y, Valid(ix, g.dw, g.kw, g.w), data.input + n * g.in.n + iy * g.in.h + ix * g.in.w, weights,
                      data.bias, data.out + n * g.out.n + oy * g.out.h + ox * g.out.w);
      }
    }
  }
}

template void depthwise_convolution<float>(const ConvGeometry&, const Slab&, const ConvData<float>&, std::byte*);
template void depthwise_convolution<double>(const ConvGeometry&, const Slab&, const ConvData<double>&, std::byte*);
template void depthwise_channels_convolution<float>(const ConvGeometry&, const ConvData<float>&, std::byte*);
template void depthwise_channels_convolution<double>(const ConvGeometry&, const ConvData<double>&, std::byte*);

extern const KernelTable table_convolution_depthwise;
const KernelTable table_convolution_depthwise = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
