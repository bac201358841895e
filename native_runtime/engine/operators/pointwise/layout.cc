#include "engine/operators/pointwise/layout.h"

#include <algorithm>

namespace wb::engine::WB_ISA {
namespace {

// Bit k: input k repeats along dimension d of the result (aligned at the end).
std::uint32_t repeats_at(const Shape& out, const TensorView* inputs, int count, int d) {
  std::uint32_t mask = 0;
  for (int k = 0; k < count; ++k) {
    const Shape& shape = inputs[k].shape;
    const int own = d - (out.rank - shape.rank);
    if (own < 0 || shape.sizes[own] == 1) mask |= 1U << k;
  }
  return mask;
}

}  // namespace

void PointwiseLayout::merge(const Shape& out, const TensorView* inputs, int count) {
  std::uint32_t masks[kMaxRank + 2] = {};
  std::int64_t merged[kMaxRank + 2] = {};
  int used = 0;
  for (int d = 0; d < out.rank; ++d) {
    if (out.sizes[d] == 1) continue;
    const std::uint32_t mask = repeats_at(out, inputs, count, d);
    if (used > 0 && masks[used - 1] == mask) {
      merged[used - 1] *= out.sizes[d];
    } else {
      masks[used] = mask;
      merged[used++] = out.sizes[d];
    }
  }
  const int missing = std::max(0, 2 - used);
  rank = used + missing;
  for (int d = 0; d < missing; ++d) sizes[d] = 1;
  for (int d = 0; d < used; ++d) sizes[d + missing] = merged[d];
  for (int k = 0; k < count; ++k) {
    std::int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const bool repeats = d < missing || (masks[d - missing] >> k & 1U) != 0;
      strides[k][d] = repeats ? 0 : stride;
      if (!repeats) stride *= sizes[d];
    }
  }
}

void PointwiseLayout::cut(std::int64_t limit) {
  block_cols = std::clamp<std::int64_t>(cols(), 1, limit);
  if (block_cols < cols()) {  // pieces of one length, whole vectors but for the last
    const std::int64_t pieces = (cols() + limit - 1) / limit;
    block_cols = std::min(limit, ((cols() + pieces - 1) / pieces + 15) / 16 * 16);
  }
  block_rows = std::clamp<std::int64_t>(limit / block_cols, 1, std::max<std::int64_t>(1, rows()));
  row_blocks = (rows() + block_rows - 1) / block_rows;
  col_blocks = (cols() + block_cols - 1) / block_cols;
  blocks = row_blocks * col_blocks;
  for (int d = 0; d < rank - 2; ++d) blocks *= sizes[d];
}

bool PointwiseLayout::repeats_by_row(int k) const {
  if (col_blocks != 1) return false;
  for (int d = 0; d < rank - 1; ++d) {
    if (strides[k][d] != 0) return false;
  }
  return true;
}

Rectangle::Rectangle(const PointwiseLayout& layout, int count, std::int64_t index) {
  const std::int64_t col = index % layout.col_blocks * layout.block_cols;
  index /= layout.col_blocks;
  const std::int64_t row = index % layout.row_blocks * layout.block_rows;
  index /= layout.row_blocks;
  rows = std::min(layout.block_rows, layout.rows() - row);
  cols = std::min(layout.block_cols, layout.cols() - col);
  out = row * layout.cols() + col;
  for (int k = 0; k < count; ++k) inputs[k] = row * layout.row_stride(k) + col * layout.col_stride(k);
  std::int64_t step = layout.rows() * layout.cols();
  for (int d = layout.rank - 3; d >= 0; --d) {
    const std::int64_t at = index % layout.sizes[d];
    index /= layout.sizes[d];
    out += at * step;
    step *= layout.sizes[d];
    for (int k = 0; k < count; ++k) inputs[k] += at * layout.strides[k][d];
  }
}

}  // namespace wb::engine::WB_ISA
