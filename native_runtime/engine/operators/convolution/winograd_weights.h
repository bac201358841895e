// Weights of Winograd's method, by panels of output channels. Either transformed while packing, [panel][side^2][k][n],
// or as they are, [panel][k][9][n], and transformed in each run, some channels at a time: that is a quarter (M = 4) or
// nine sixteenths (M = 2) of the memory, and of the bytes that a run reads.
#pragma once

#include <algorithm>
#include <utility>

#include "engine/operators/convolution/winograd_transforms.h"
#include "engine/operators/matmul/packed.h"

namespace wb::engine::WB_ISA::dense {

inline constexpr int kWinogradTaps = 9;

template <int M>
struct WinogradWeights {
  using Transforms = Winograd<M>;
  static constexpr int kSide = Transforms::kSide;
  static constexpr int kElements = kSide * kSide;

  const float* data = nullptr;
  std::int64_t k = 0, n = 0;  // channels: input, output
  bool taps = false;          // as they are

  [[nodiscard]] std::int64_t panels() const { return (n + kPanel - 1) / kPanel; }
  // That exist, and that are stored.
  [[nodiscard]] int columns(std::int64_t panel) const {
    return static_cast<int>(std::min<std::int64_t>(n - panel * kPanel, kPanel));
  }
  [[nodiscard]] int stored(std::int64_t panel) const {
    const std::int64_t unit = taps ? kWidth : kUnit;
    return static_cast<int>((columns(panel) + unit - 1) / unit * unit);
  }
  [[nodiscard]] std::int64_t planes() const { return taps ? kWinogradTaps : kElements; }
  [[nodiscard]] std::int64_t panel_start(std::int64_t panel) const { return panel * kPanel * k * planes(); }
  [[nodiscard]] std::size_t bytes() const {
    if (n == 0) return 0;
    const std::int64_t last = panels() - 1;
    return static_cast<std::size_t>(panel_start(last) + stored(last) * k * planes()) * sizeof(float);
  }

  // Panels [first_panel, last_panel).
  void pack(const MatrixSource& source, std::int64_t first_panel, std::int64_t last_panel, float* to) const {
    Vector gathered[kWidth * kWinogradTaps];
    const std::int64_t end = std::min(last_panel * kPanel, n);
    for (std::int64_t column = first_panel * kPanel; column < end; column += kWidth) {
      const auto count = static_cast<int>(std::min<std::int64_t>(n - column, kWidth));
      const std::int64_t panel = column / kPanel;
      const int step = stored(panel);
      float* const place = to + panel_start(panel) + column % kPanel;
      const auto lanes = static_cast<int>(std::min<std::int64_t>(step - column % kPanel, kWidth));
      for (std::int64_t first = 0; first < k; first += kWidth) {
        const auto rows = static_cast<int>(std::min<std::int64_t>(k - first, kWidth));
        gather_taps(source, column, count, first, rows, gathered);
        for (int i = 0; i < rows; ++i) {
          pack_row(gathered + kWinogradTaps * i, first + i, step, lanes, place);
        }
      }
    }
  }

  // Rows [k0, k0 + kc) of a panel of taps, transformed, elements (Transforms::kRows[Pair][i], x): the one with index
  // i kSide + x stands at to + (i kSide + x) plane, its rows stored(panel) apart.
  template <int Pair>
  void transform(std::int64_t panel, std::int64_t k0, std::int64_t kc, float* to, std::int64_t plane) const {
    const int step = stored(panel);
    const float* from = data + panel_start(panel) + k0 * kWinogradTaps * step;
    for (std::int64_t i = 0; i < kc; ++i) {
      for (int lane = 0; lane < step; lane += kWidth) {
        Vector g[kWinogradTaps];
#pragma GCC unroll 9
        for (int t = 0; t < kWinogradTaps; ++t) g[t] = simd::load(from + t * step + lane);
        Vector rows[2 * kSide];
        transform_rows<Pair>(g, rows, rows + kSide);
#pragma GCC unroll 12
        for (int e = 0; e < 2 * kSide; ++e) simd::store(to + e * plane + lane, rows[e]);
      }
      from += kWinogradTaps * step;
      to += step;
    }
  }

 private:
  // Rows kRows[Pair] of the transformed kernel.
  template <int Pair>
  [[gnu::always_inline]] static void transform_rows(const Vector* g, Vector* first, Vector* second) {
    Vector half[2][3];
#pragma GCC unroll 3
    for (int x = 0; x < 3; ++x) Transforms::template weight<Pair, 3>(g + x, &half[0][x], &half[1][x]);
    transform_row(half[0], first, std::make_index_sequence<kSide / 2>());
    transform_row(half[1], second, std::make_index_sequence<kSide / 2>());
  }
  template <std::size_t... Pair>
  [[gnu::always_inline]] static void transform_row(const Vector* half, Vector* to,
                                                   std::index_sequence<Pair...> /*pairs*/) {
    (Transforms::template weight<Pair, 1>(half, to + Transforms::kRows[Pair][0], to + Transforms::kRows[Pair][1]), ...);
  }
  template <std::size_t... Pair>
  static void transform_all(const Vector* g, Vector* whole, std::index_sequence<Pair...> /*pairs*/) {
    (transform_rows<Pair>(g, whole + Transforms::kRows[Pair][0] * kSide, whole + Transforms::kRows[Pair][1] * kSide),
     ...);
  }

  void pack_row(const Vector* g, std::int64_t row, int step, int lanes, float* place) const {
    if (taps) {
      for (int t = 0; t < kWinogradTaps; ++t) simd::store(place + (row * kWinogradTaps + t) * step, g[t]);
      return;
    }
    Vector whole[kElements];
    transform_all(g, whole, std::make_index_sequence<kSide / 2>());
    for (int e = 0; e < kElements; ++e) {
      float* const to = place + (e * k + row) * step;
      if (lanes == kWidth) {
        simd::store(to, whole[e]);
      } else {
        simd::store_first(to, whole[e], lanes);
      }
    }
  }
};

}  // namespace wb::engine::WB_ISA::dense
