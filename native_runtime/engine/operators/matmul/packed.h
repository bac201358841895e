// A constant right-hand matrix B (k x n), arranged for tiles: blocks of rows, in them panels of kPanel columns (the
// last one may be one vector wide), in them the rows one after the other. Columns past n are 0.
#pragma once

#include "core/scalar_type.h"
#include "engine/operators/matmul/tile.h"

namespace wb::engine::WB_ISA::dense {

// Rows of a block: a tile of A (kTileRows x kBlockK) stays in the first-level cache, a block of B in the second.
inline constexpr std::int64_t kBlockK = 512;
inline constexpr std::int64_t kBlockBytes = 448 * 1024;

struct PackedMatrix {
  const float* data = nullptr;
  std::int64_t k = 0, n = 0;

  [[nodiscard]] std::int64_t columns() const { return round_up(n); }
  [[nodiscard]] std::int64_t panels() const { return (n + kPanel - 1) / kPanel; }
  // Blocks of nearly the same number of rows, a multiple of four.
  [[nodiscard]] std::int64_t blocks() const { return k == 0 ? 1 : (k + kBlockK - 1) / kBlockK; }
  [[nodiscard]] std::int64_t block_start(std::int64_t block) const {
    const std::int64_t start = (k * block / blocks() + 3) / 4 * 4;
    return start < k ? start : k;
  }
  [[nodiscard]] int panel_columns(std::int64_t panel) const {
    const std::int64_t left = n - panel * kPanel;
    return static_cast<int>(left < kPanel ? left : kPanel);
  }
  // To the columns that are stored.
  [[nodiscard]] static constexpr std::int64_t round_up(std::int64_t columns) {
    return (columns + kUnit - 1) / kUnit * kUnit;
  }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(k * columns()) * sizeof(float); }
  // Where the panel of the block of rows [k0, k0 + kc) starts.
  [[nodiscard]] const float* panel(std::int64_t k0, std::int64_t kc, std::int64_t index) const {
    return data + k0 * columns() + index * kPanel * kc;
  }
};

// Element (kk, j) of B, kk = (y kernel_w + x) inner + i, stands at data[j column + i row + y tap_h + x tap_w]: the taps
// (y, x) of a convolution, or just one.
struct MatrixSource {
  const void* data = nullptr;
  ScalarType dtype = ScalarType::Float;  // or Half
  std::int64_t inner = 0, kernel_h = 1, kernel_w = 1;
  std::int64_t column = 0, row = 0, tap_h = 0, tap_w = 0;

  [[nodiscard]] std::int64_t taps() const { return kernel_h * kernel_w; }
  [[nodiscard]] std::int64_t offset(std::int64_t kk) const {
    const std::int64_t tap = kk / inner;
    return kk % inner * row + tap / kernel_w * tap_h + tap % kernel_w * tap_w;
  }
  // A column stands in one piece, channel after channel within a tap, or tap after tap within a channel.
  [[nodiscard]] bool inner_first() const {
    return row == 1 && (kernel_w == 1 || tap_w == inner) && (kernel_h == 1 || tap_h == kernel_w * inner);
  }
  [[nodiscard]] bool taps_first() const {
    return row == taps() && (kernel_w == 1 || tap_w == 1) && (kernel_h == 1 || tap_h == kernel_w);
  }
};

// Where the rows of one vector of columns (the one that starts with `column`) stand in a packed matrix at `to`.
class PackedColumn {
 public:
  PackedColumn(const PackedMatrix& matrix, std::int64_t column, float* to)
      : matrix_(matrix), to_(to), panel_(column / kPanel), lane_(column % kPanel) {
    stride_ = PackedMatrix::round_up(matrix.panel_columns(panel_));
    columns_ = static_cast<int>(stride_ - lane_ < kWidth ? stride_ - lane_ : kWidth);
  }
  // Row kk of the matrix that stands `offset` elements further.
  void store(std::int64_t kk, std::int64_t offset, Vector v) {
    if (kk < start_ || kk >= end_) enter(kk);
    float* const to = base_ + (kk - start_) * stride_ + offset;
    if (columns_ == kWidth) {
      simd::store(to, v);
    } else {
      simd::store_first(to, v, columns_);
    }
  }

 private:
  void enter(std::int64_t kk);

  const PackedMatrix& matrix_;
  float* to_;
  std::int64_t panel_, lane_, stride_;
  int columns_;                       // that are stored
  std::int64_t start_ = 0, end_ = 0;  // rows of the block that base_ is for
  float* base_ = nullptr;
};

// Elements of `columns` (at most kWidth) columns from `column` on, as vectors over the columns: all taps of inner row
// `first`, then those of the next one, of `count` (at most kWidth) of them.
void gather_taps(const MatrixSource& source, std::int64_t column, int columns, std::int64_t first, int count,
                 Vector* to);

// Writes the matrix to `to` (matrix.bytes() bytes): panels [first_panel, last_panel).
void pack_matrix(const PackedMatrix& matrix, const MatrixSource& source, std::int64_t first_panel,
                 std::int64_t last_panel, float* to);

// n numbers as float.
void convert_floats(const void* from, ScalarType dtype, std::int64_t n, float* to);

}  // namespace wb::engine::WB_ISA::dense
