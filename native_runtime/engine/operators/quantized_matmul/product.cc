#include "engine/operators/quantized_matmul/product.h"

#include <algorithm>

#include "engine/operators/quantized_matmul/left.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

// Of B, for which all tiles of rows are computed before the next ones: half of a second-level cache.
constexpr std::int64_t kBlockBytes = 384 * 1024;
// Multiplications that are worth another thread, which costs less than 1 us: about 3 us of products of many rows, and
// of products of few, which wait for their weights.
constexpr std::int64_t kWorthwhile = std::int64_t{1} << 19;
constexpr std::int64_t kWorthwhileFew = std::int64_t{1} << 17;
constexpr std::int64_t kFewRows = 4;

// Rows in tiles of about the same size, one after the other: 7 rows are 4 + 3, not 6 + 1. No tile is of two periods.
class RowTiles {
 public:
  RowTiles(std::int64_t begin, std::int64_t end, std::int64_t period)
      : first(begin),
        end_(end),
        each_((period + kTileRows - 1) / kTileRows),
        few_(period / each_),
        more_(period % each_) {}
  [[nodiscard]] bool done() const { return first >= end_; }
  [[nodiscard]] int rows() const { return static_cast<int>(few_ + (index_ < more_ ? 1 : 0)); }
  void next() {
    first += rows();
    if (++index_ == each_) index_ = 0;
  }

  std::int64_t first;

 private:
  std::int64_t end_, each_, few_, more_, index_ = 0;
};

// What belongs to the rows of a tile.
struct RowNumbers {
  std::int32_t offsets[kTileRows];
  std::int32_t adds[kTileRows];
  float scales[kTileRows];
};

class Worker {
 public:
  Worker(const Product& product, std::int64_t p0, std::int64_t p1, std::byte* scratch)
      : product_(product), p0_(p0), p1_(p1), left_(reinterpret_cast<DotLeft*>(scratch)), ld_(left_ld(product.b.k)) {
    tile_.a = left_;
    tile_.lda = ld_;
    tile_.steps = product.b.steps();
    tile_.nibble_zero = static_cast<std::int8_t>(product.b.nibble_zero);
    const bool grouped = product.columns.group != 0;
    tile_.group_steps = grouped ? product.columns.group / kDotDepth : 0;
    tile_.columns = product.b.columns();
    if (product.rows != nullptr || grouped) {
      tile_.offsets = numbers_.offsets;
      tile_.row_scales = numbers_.scales;
    }
    if (product.b_zero != 0) tile_.adds = numbers_.adds;
    tile_.store = product.finish.rest == nullptr ? product.finish.store : product.finish.numbers;
    tile_.store.direct = product.finish.direct(product.columns);
  }

  void rows(std::int64_t i, int rows) {
    product_.a.fill(product_.a.self, i, rows, left_, ld_);
    if (tile_.row_scales != nullptr) take_rows(i, rows);
    if (product_.b_zero != 0) take_sums(rows);
    for (std::int64_t p = p0_; p < p1_; ++p) panel(i, rows, p);
  }

 private:
  void take_rows(std::int64_t i, int rows) {
    for (int r = 0; r < rows; ++r) {
      RowQuantization q{product_.row_scale, 0};
      if (product_.rows != nullptr) q = product_.rows[i + r];
      numbers_.offsets[r] = -(q.zero_point + product_.a_zero);
      numbers_.scales[r] = q.scale;
    }
  }

  // Of A's rows, for a B whose zeros are not 0: - b_zero sum over kk of (a - a_zero).
  void take_sums(int rows) {
    for (int r = 0; r < rows; ++r) {
      const DotLeft* a = left_ + r * ld_;
      std::int32_t sum = 0;
      for (std::int64_t kk = 0; kk < product_.b.k; ++kk) sum += a[kk];
      std::int32_t zero = product_.a_zero;
      if (product_.rows != nullptr) zero = -numbers_.offsets[r];
      numbers_.adds[r] = -product_.b_zero * (sum - static_cast<std::int32_t>(product_.b.k) * zero);
    }
  }

  [[nodiscard]] std::int64_t result_row(std::int64_t i) const {
    const Product& p = product_;
    if (p.period == 0) return p.row0 + i;
    return p.row0 + i / p.period * p.row_period + i % p.period * p.row_step;
  }

  void panel(std::int64_t i, int rows, std::int64_t p) {
    const Product& product = product_;
    const std::int64_t row = result_row(i);
    const std::int64_t step = product.period == 0 ? 1 : product.row_step;
    const std::int64_t column = p * kPanelColumns;
    const int width = product.b.panel_columns(p);
    std::byte* const c = product.c + (row * product.ldc + column) * product.element;
    if (product.finish.rest == nullptr) {
      tile_.c = c;
      tile_.ldc = product.ldc * step;
      multiply(rows, p, width);
      return;
    }
    alignas(64) float numbers[kTileRows * kPanelColumns];
    tile_.c = numbers;
    tile_.ldc = kPanelColumns;
    multiply(rows, p, width);
    const Epilogue& rest = *product.finish.rest;
    const std::int64_t col = product.col0 + column;
    if (step == 1) {
      rest.apply(numbers, kPanelColumns, row, rows, col, width);
    } else {
      for (int r = 0; r < rows; ++r) {
        rest.apply(numbers + r * kPanelColumns, kPanelColumns, row + r * step, 1, col, width);
      }
    }
    for (int r = 0; r < rows; ++r) {
      store_numbers(product.finish.store, numbers + r * kPanelColumns, width,
                    c + r * step * product.ldc * product.element);
    }
  }

  void multiply(int rows, std::int64_t p, int width) {
    const Product& product = product_;
    const Columns& columns = product.columns;
    const bool nibbles = product.b.nibbles;
    const std::int64_t column = p * kPanelColumns;
    const int vectors = product.b.panel_vectors(p);
    tile_.ldb = static_cast<std::int64_t>(vectors) * kDotBytes;
    tile_.b = product.b.panel(p);
    tile_.start = columns.start + column;
    tile_.sums = columns.sums + column;
    tile_.scale = (tile_.store.direct ? columns.direct_scale : columns.scale) + column;
    tile_.bias = (tile_.store.direct ? columns.direct_bias : columns.bias) + column;
    tile_.width = width;
    if (columns.group == 0) {
      tile_function(rows, vectors, nibbles)(tile_);
      return;
    }
    tile_.weight_sums = columns.weight_sums + column;
    for (int v = 0; v < vectors; v += kGroupVectors) {
      const int count = std::min(vectors - v, kGroupVectors);
      tile_.width = std::min(width - v * kFloats, count * kFloats);
      group_tile_function(rows, count, nibbles)(tile_);
      constexpr int kColumns = kGroupVectors * kFloats;
      tile_.b += kGroupVectors * kDotBytes;
      tile_.scale += kColumns;
      tile_.bias += kColumns;
      tile_.weight_sums += kColumns;
      tile_.c = static_cast<std::byte*>(tile_.c) + kColumns * (product.finish.rest != nullptr ? 4 : product.element);
    }
  }

  const Product& product_;
  std::int64_t p0_, p1_;
  DotLeft* left_;
  std::int64_t ld_;
  RowNumbers numbers_;
  Tile tile_;
};

}  // namespace

std::int64_t left_ld(std::int64_t k) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(DotLeft));
  const std::int64_t lines = (k + kDepthUnit - 1) / kDepthUnit * kDepthUnit / kLine + 1;
  return (lines + (lines % 2 == 0 ? 1 : 0)) * kLine;  // an odd number: rows don't share a set of the first cache
}

std::int64_t product_scratch(std::int64_t k) {
  return (kTileRows * left_ld(k) + kLeftSlack) * static_cast<std::int64_t>(sizeof(DotLeft));
}

void product_part(const Product& product, std::int64_t i0, std::int64_t i1, std::int64_t p0, std::int64_t p1,
                  std::byte* scratch) {
  if (i0 >= i1 || p0 >= p1) return;
  const std::int64_t panel_bytes = std::max<std::int64_t>(product.b.depth_bytes() * kPanelColumns, 1);
  const std::int64_t together = std::max<std::int64_t>(kBlockBytes / panel_bytes, 1);
  for (std::int64_t p = p0; p < p1; p += together) {
    Worker worker(product, p, std::min(p + together, p1), scratch);
    for (RowTiles t(i0, i1, product.period == 0 ? i1 - i0 : product.period); !t.done(); t.next()) {
      worker.rows(t.first, t.rows());
    }
  }
}

void product_all(const Product& product, Pool& pool, std::byte* scratch) {
  const std::int64_t panels = product.b.panels();
  const std::int64_t threads = pool.threads();
  const std::int64_t own = product_scratch(product.b.k);
  const std::int64_t work = product.m * product.b.n * std::max<std::int64_t>(product.b.k, 1);
  const std::int64_t worthwhile = product.m <= kFewRows ? kWorthwhileFew : kWorthwhile;
  const std::int64_t most = std::min<std::int64_t>(work / worthwhile, 4 * threads);
  if (threads == 1 || most < 2) {
    product_part(product, 0, product.m, 0, panels, scratch);
    return;
  }
  const std::int64_t period = std::max<std::int64_t>(product.period, 1);
  const std::int64_t units = product.m / period;
  if (panels >= threads && (product.m < 4 * kTileRows * threads || units < threads)) {
    const std::int64_t parts = std::min(threads * (panels >= 4 * threads ? 2 : 1), panels);
    pool.parallel(parts, [&](std::int64_t part, int thread) {
      product_part(product, 0, product.m, part * panels / parts, (part + 1) * panels / parts, scratch + thread * own);
    });
    return;
  }
  const std::int64_t parts = std::min(units, std::max(most / threads * threads, threads));
  pool.parallel(parts, [&](std::int64_t part, int thread) {
    product_part(product, part * units / parts * period, (part + 1) * units / parts * period, 0, panels,
                 scratch + thread * own);
  });
}

}  // namespace wb::engine::WB_ISA::quantized
