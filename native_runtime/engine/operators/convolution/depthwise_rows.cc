#include "engine/operators/convolution/depthwise_rows.h"

#include <algorithm>
#include <array>
#include <utility>

namespace wb::engine::WB_ISA::dense {
namespace {

struct Block {
  const DepthwiseRow& row;
  std::int64_t ox;  // first pixel
  float* to;        // its first channel

  [[nodiscard]] std::int64_t channels() const { return row.g.cin; }
  [[nodiscard]] std::int64_t tap_step() const { return (row.g.cin + kWidth - 1) / kWidth * kWidth; }
  // Channel 0 of the input pixel in column ix of the row that meets kernel row ky.
  [[nodiscard]] const float* pixel(std::int64_t ky, std::int64_t ix) const {
    const bool inside = ix >= 0 && ix < row.g.w;
    return inside ? row.rows[ky] + ix * row.g.cin : row.zeros;
  }
};

// Calls body(channel, n) for each vector of channels; n is a constant kWidth but for the last, partial one.
template <typename Body>
[[gnu::always_inline]] inline void for_channels(std::int64_t channels, Body body) {
  std::int64_t c = 0;
  for (; c + kWidth <= channels; c += kWidth) body(c, Whole{});
  if (c < channels) body(c, static_cast<int>(channels - c));
}

[[gnu::always_inline]] inline Vector finished(const DepthwiseRow& row, Vector v) {
  if (!row.clamp) return v;
  return simd::min(simd::splat(row.high), simd::max(simd::splat(row.low), v));
}

// A square kernel without dilation: each input column is loaded once for all outputs that it belongs to.
template <int Kernel, int Stride, int Pixels>
void square_block(const Block& block) {
  constexpr int kColumns = (Pixels - 1) * Stride + Kernel;
  const DepthwiseRow& row = block.row;
  const float* inputs[Kernel][kColumns];
  int present[Kernel];
  int count = 0;
  const std::int64_t ix = block.ox * Stride - row.g.left;
  const bool inside = ix >= 0 && ix + kColumns <= row.g.w;
  for (int ky = 0; ky < Kernel; ++ky) {
    if (row.rows[ky] == nullptr) continue;
    const float* first = row.rows[ky] + ix * row.g.cin;
#pragma GCC unroll 20
    for (int i = 0; i < kColumns; ++i) inputs[count][i] = inside ? first + i * row.g.cin : block.pixel(ky, ix + i);
    present[count++] = ky;
  }
  const std::int64_t tap_step = block.tap_step();
  for_channels(block.channels(), [&](std::int64_t c, auto n) __attribute__((always_inline)) {
    Vector acc[Pixels];
    const Vector bias = row.bias != nullptr ? load_some(row.bias + c, n) : Vector{};
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p) acc[p] = bias;
    const auto kernel_row = [&](int r) __attribute__((always_inline)) {
      const float* taps = row.taps + present[r] * Kernel * tap_step + c;
      Vector weights[Kernel];
#pragma GCC unroll 5
      for (int kx = 0; kx < Kernel; ++kx) weights[kx] = simd::load(taps + kx * tap_step);
#pragma GCC unroll 20
      for (int i = 0; i < kColumns; ++i) {
        const Vector x = load_some(inputs[r][i] + c, n);
#pragma GCC unroll 5
        for (int kx = 0; kx < Kernel; ++kx) {
          const int offset = i - kx;
          if (offset >= 0 && offset % Stride == 0 && offset / Stride < Pixels) {
            acc[offset / Stride] = simd::fma(x, weights[kx], acc[offset / Stride]);
          }
        }
      }
    };
    if (count == Kernel) {
#pragma GCC unroll 5
      for (int r = 0; r < Kernel; ++r) kernel_row(r);
    } else {
      for (int r = 0; r < count; ++r) kernel_row(r);
    }
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p) store_some(block.to + p * row.g.cin + c, finished(row, acc[p]), n);
  });
}

// Any kernel, one pixel.
void any_pixel(const Block& block) {
  const DepthwiseRow& row = block.row;
  const Geometry& g = row.g;
  const std::int64_t ix = block.ox * g.sw - g.left;
  const std::int64_t tap_step = block.tap_step();
  for_channels(block.channels(), [&](std::int64_t c, auto n) {
    Vector acc = row.bias != nullptr ? load_some(row.bias + c, n) : Vector{};
    for (std::int64_t ky = 0; ky < g.kh; ++ky) {
      if (row.rows[ky] == nullptr) continue;
      const float* taps = row.taps + ky * g.kw * tap_step + c;
      for (std::int64_t kx = 0; kx < g.kw; ++kx) {
        const std::int64_t x = ix + kx * g.dw;
        if (x < 0 || x >= g.w) continue;
        acc = simd::fma(load_some(row.rows[ky] + x * g.cin + c, n), simd::load(taps + kx * tap_step), acc);
      }
    }
    store_some(block.to + c, finished(row, acc), n);
  });
}

using BlockFunction = void (*)(const Block& block);

template <int Kernel, int Stride, std::size_t... P>
constexpr std::array<BlockFunction, sizeof...(P)> square_blocks(std::index_sequence<P...> /*pixels*/) {
  return {square_block<Kernel, Stride, static_cast<int>(P) + 1>...};
}
template <int Kernel, int Stride>
constexpr auto kSquare = square_blocks<Kernel, Stride>(std::make_index_sequence<kDepthwisePixels>());

// Functions by pixels - 1; null for a kernel without.
const BlockFunction* square_functions(const Geometry& g) {
  if (g.kh != g.kw || g.sh != g.sw || g.dh != 1 || g.dw != 1) return nullptr;
  if (g.kh == 3 && g.sh == 1) return kSquare<3, 1>.data();
  if (g.kh == 3 && g.sh == 2) return kSquare<3, 2>.data();
  if (g.kh == 5 && g.sh == 1) return kSquare<5, 1>.data();
  if (g.kh == 5 && g.sh == 2) return kSquare<5, 2>.data();
  return nullptr;
}

}  // namespace

void depthwise_row(const DepthwiseRow& row, float* to) {
  const Geometry& g = row.g;
  const BlockFunction* functions = square_functions(g);
  const std::int64_t largest = functions == nullptr ? 1 : kDepthwisePixels;
  const std::int64_t blocks = (g.ow + largest - 1) / largest;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t ox = b * g.ow / blocks;
    const std::int64_t pixels = (b + 1) * g.ow / blocks - ox;
    const Block block{row, ox, to + ox * g.cin};
    if (functions == nullptr) {
      any_pixel(block);
    } else {
      functions[pixels - 1](block);
    }
  }
}

}  // namespace wb::engine::WB_ISA::dense
