// Tiles of images and what Winograd's products make of them: there and back, in vectors over channels.
#pragma once

#include <algorithm>

#include "engine/operators/convolution/geometry.h"
#include "engine/operators/convolution/winograd_transforms.h"
#include "engine/operators/matmul/finish.h"

namespace wb::engine::WB_ISA::dense {

// Transformed tiles that are multiplied at a time, at most: the weights are read, or transformed, once for all of them.
template <int M>
std::int64_t most_winograd_tiles(const Geometry& g) {
  constexpr std::int64_t kImageBytes = 512 * 1024;
  constexpr std::int64_t kFewest = 24;
  constexpr std::int64_t kSide = Winograd<M>::kSide;
  const std::int64_t channels = (g.cin + kWidth - 1) / kWidth * kWidth;
  return std::max(kImageBytes / std::max<std::int64_t>(kSide * kSide * channels * std::int64_t{sizeof(float)}, 1),
                  kFewest);
}

// Transformed tiles: [side^2][tiles][channels].
struct Planes {
  float* data;
  std::int64_t channels, plane;

  Planes(float* memory, std::int64_t tiles, std::int64_t count)
      : data(memory), channels(row(count)), plane(tiles * channels + kWidth) {}
  [[nodiscard]] float* at(std::int64_t element, std::int64_t tile) const {
    return data + element * plane + tile * channels;
  }
  static std::int64_t elements(int side, std::int64_t tiles, std::int64_t count) {
    return side * side * (tiles * row(count) + kWidth);
  }

 private:
  // Neither planes nor rows start at the same place of a page: a tile writes to all planes, a product reads many rows.
  static std::int64_t row(std::int64_t count) {
    constexpr std::int64_t kCollides = 512;
    const std::int64_t whole = (count + kWidth - 1) / kWidth * kWidth;
    return whole % kCollides == 0 ? whole + kWidth : whole;
  }
};

template <int M>
struct WinogradTiles {
  using Transforms = Winograd<M>;
  static constexpr int kSide = Transforms::kSide;
  static constexpr int kElements = kSide * kSide;

  static std::int64_t high(const Geometry& g) { return (g.oh + M - 1) / M; }
  static std::int64_t wide(const Geometry& g) { return (g.ow + M - 1) / M; }
  static std::int64_t count(const Geometry& g) { return g.batch * high(g) * wide(g); }

  // Writes a tile of the image; `zeros` is a pixel of padding.
  static void transform_input(const Geometry& g, const float* image, std::int64_t tile, const float* zeros, float* to,
                              std::int64_t plane) {
    const std::int64_t iy = tile / wide(g) % high(g) * M - g.top;
    const std::int64_t ix = tile % wide(g) * M - g.left;
    const float* base = image + tile / wide(g) / high(g) * g.h * g.w * g.cin;
    const float* pixels[kElements];
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const bool inside = iy + y >= 0 && iy + y < g.h && ix + x >= 0 && ix + x < g.w;
        pixels[y * kSide + x] = inside ? base + ((iy + y) * g.w + ix + x) * g.cin : zeros;
      }
    }
    std::int64_t c = 0;
    for (; c + kWidth <= g.cin; c += kWidth) {
      input_vector(to + c, plane, [&](int i) __attribute__((always_inline)) { return simd::load(pixels[i] + c); });
    }
    if (c == g.cin) return;
    const auto rest = static_cast<int>(g.cin - c);
    input_vector(to + c, plane, [&](int i) { return simd::load_first(pixels[i] + c, rest); });
  }

  // Finishes channels [begin, end) of a tile of the result; `from` holds the products of channel `begin`.
  static void transform_output(const Geometry& g, const Finish& finish, std::int64_t tile, std::int64_t begin,
                               std::int64_t end, const float* from, std::int64_t plane, float* out) {
    const std::int64_t oy = tile / wide(g) % high(g) * M;
    const std::int64_t ox = tile % wide(g) * M;
    const auto rows = static_cast<int>(std::min<std::int64_t>(M, g.oh - oy));
    const auto columns = static_cast<int>(std::min<std::int64_t>(M, g.ow - ox));
    const std::int64_t pixel = (tile / wide(g) / high(g) * g.oh + oy) * g.ow + ox;
    const Output output{g, finish, out, pixel, plane, rows, columns};
    std::int64_t c = begin;
    for (; c + kWidth <= end; c += kWidth) output.vector(from + (c - begin), c, Whole{});
    if (c < end) output.vector(from + (c - begin), c, static_cast<int>(end - c));
    if (finish.rest == nullptr) return;
    for (int y = 0; y < rows; ++y) {
      const std::int64_t row = pixel + y * g.ow;
      finish.rest->apply(out + row * g.cout + begin, g.cout, row, columns, begin, end - begin);
    }
  }

 private:
  template <typename Load>
  [[gnu::always_inline]] static void input_vector(float* to, std::int64_t plane, Load load) {
    Vector half[kElements];
#pragma GCC unroll 6
    for (int x = 0; x < kSide; ++x) {
      Vector column[kSide];
#pragma GCC unroll 6
      for (int y = 0; y < kSide; ++y) column[y] = load(y * kSide + x);
      Transforms::template input<1, kSide>(column, half + x);
    }
#pragma GCC unroll 6
    for (int y = 0; y < kSide; ++y) {
      Vector row[kSide];
      Transforms::template input<1, 1>(half + y * kSide, row);
#pragma GCC unroll 6
      for (int x = 0; x < kSide; ++x) simd::store(to + (y * kSide + x) * plane, row[x]);
    }
  }

  struct Output {
    const Geometry& g;
    const Finish& finish;
    float* out;
    std::int64_t pixel, plane;
    int rows, columns;

    template <typename Count>
    [[gnu::always_inline]] void vector(const float* from, std::int64_t c, Count n) const {
      Vector half[M * kSide];
#pragma GCC unroll 6
      for (int x = 0; x < kSide; ++x) {
        Vector column[kSide];
#pragma GCC unroll 6
        for (int y = 0; y < kSide; ++y) column[y] = simd::load(from + (y * kSide + x) * plane);
        Transforms::template output<1, kSide>(column, half + x);
      }
      const Vector bias = finish.bias != nullptr ? load_some(finish.bias + c, n) : Vector{};
#pragma GCC unroll 4
      for (int y = 0; y < M; ++y) {
        if (y >= rows) break;
        Vector row[M];
        Transforms::template output<1, 1>(half + y * kSide, row);
        const std::int64_t at = (pixel + y * g.ow) * g.cout + c;
#pragma GCC unroll 4
        for (int x = 0; x < M; ++x) {
          if (x >= columns) break;
          Vector v = row[x] + bias;
          if (finish.residual != nullptr) v += load_some(finish.residual + at + x * g.cout, n);
          if (finish.clamp) v = simd::min(simd::splat(finish.high), simd::max(simd::splat(finish.low), v));
          store_some(out + at + x * g.cout, v, n);
        }
      }
    }
  };
};

}  // namespace wb::engine::WB_ISA::dense
