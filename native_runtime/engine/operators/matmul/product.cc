#include "engine/operators/matmul/product.h"

#include <algorithm>
#include <numeric>

namespace wb::engine::WB_ISA::dense {
namespace {

constexpr std::int64_t kCacheWay = 4096;  // bytes: addresses that far apart share a set of the first-level cache
constexpr std::int64_t kCacheWays = 8;

// Rows that far apart push each other out of the first-level cache.
bool rows_collide(std::int64_t lda, int rows) {
  const std::int64_t places = kCacheWay / std::gcd(lda * static_cast<std::int64_t>(sizeof(float)), kCacheWay);
  return rows > places * (kCacheWays - 1);
}

// Rows in tiles of about the same size: 15 rows are 8 + 7, not 14 + 1. No tile is of two periods.
struct RowTiles {
  std::int64_t first, period, each, count;
  RowTiles(std::int64_t begin, std::int64_t end, std::int64_t rows, int largest)
      : first(begin), period(rows), each((period + largest - 1) / largest), count((end - begin) / period * each) {}
  [[nodiscard]] std::int64_t start(std::int64_t tile) const {
    return first + tile / each * period + tile % each * period / each;
  }
};

// A block of B, and what comes after it.
struct Block {
  std::int64_t k0, kc;
  std::int64_t p0, p1;
  bool last;
};

class Worker {
 public:
  Worker(const Product& product, std::int64_t i0, std::int64_t i1, float* scratch)
      : product_(product),
        scratch_(scratch),
        tiles_(i0, i1, product.period == 0 ? i1 - i0 : product.period,
               product.b.columns() <= kWidth ? kNarrowRows : kTileRows) {
    copy_ = product.a.fill != nullptr || rows_collide(product.a.lda, static_cast<int>(tiles_.start(1) - i0));
  }

  void run(const Block& block, const float* next) {
    Tile tile;
    tile.k = block.kc;
    tile.ldc = product_.ldc;
    tile.accumulate = block.k0 > 0;
    const std::int64_t bytes = block.kc * (block.p1 - block.p0) * kPanel * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t steps = std::max<std::int64_t>(tiles_.count * (block.p1 - block.p0) * block.kc, 1);
    tile.ahead_step = next == nullptr ? 0 : std::min<std::int64_t>(bytes / steps, 64);
    tile.ahead = reinterpret_cast<const char*>(next);
    for (std::int64_t t = 0; t < tiles_.count; ++t) row_tile(block, t, &tile);
  }

 private:
  void row_tile(const Block& block, std::int64_t t, Tile* tile) {
    const Finish& finish = product_.finish;
    const std::int64_t i = tiles_.start(t);
    const auto rows = static_cast<int>(tiles_.start(t + 1) - i);
    place_rows(block, i, rows, tile);
    const std::int64_t offset = product_.period == 0
                                    ? i * product_.ldc
                                    : i / product_.period * product_.c_period + i % product_.period * product_.ldc;
    for (std::int64_t p = block.p0; p < block.p1; ++p) {
      const std::int64_t j = p * kPanel;
      const int columns = product_.b.panel_columns(p);
      const auto stored = static_cast<int>(PackedMatrix::round_up(columns));
      tile->b = product_.b.panel(block.k0, block.kc, p);
      tile->ldb = stored;
      tile->c = product_.c + offset + j;
      tile->tail = columns - (stored - 1) / kWidth * kWidth;
      tile->bias = finish.bias == nullptr ? nullptr : finish.bias + j;
      if (block.last) {
        tile->residual = finish.residual == nullptr ? nullptr : finish.residual + offset + j;
        tile->clamp = finish.clamp;
        tile->low = finish.low;
        tile->high = finish.high;
      }
      tile_function_of(rows, stored)(*tile);
      tile->ahead += tile->ahead_step * block.kc;
    }
    if (block.last && finish.rest != nullptr) finish_tile(block, i, rows, product_.c + offset);
  }

  void finish_tile(const Block& block, std::int64_t i, int rows, float* c) const {
    const std::int64_t j = block.p0 * kPanel;
    const std::int64_t columns = std::min(block.p1 * kPanel, product_.b.n) - j;
    const std::int64_t col = product_.col0 + j;
    std::int64_t row = product_.row0 + i;
    if (product_.period != 0) {
      row = product_.row0 + i / product_.period * product_.row_period + i % product_.period * product_.row_step;
    }
    if (product_.row_step == 1) {
      product_.finish.rest->apply(c + j, product_.ldc, row, rows, col, columns);
      return;
    }
    for (int r = 0; r < rows; ++r) {
      product_.finish.rest->apply(c + r * product_.ldc + j, product_.ldc, row + r * product_.row_step, 1, col, columns);
    }
  }

  void place_rows(const Block& block, std::int64_t i, int rows, Tile* tile) {
    const RowSource& a = product_.a;
    if (!copy_) {
      tile->a = a.data + i * a.lda + block.k0;
      tile->lda = a.lda;
      return;
    }
    tile->runs = 1;
    tile->k = block.kc;
    if (a.place != nullptr && block.k0 == 0 && block.last && a.place(a.self, i, rows, tile)) return;
    tile->a = scratch_;
    tile->lda = kRowScratchLd;
    if (a.fill != nullptr) {
      a.fill(a.self, i, rows, block.k0, block.kc, scratch_, kRowScratchLd);
      return;
    }
    for (int r = 0; r < rows; ++r) {
      std::copy_n(a.data + (i + r) * a.lda + block.k0, block.kc, scratch_ + r * kRowScratchLd);
    }
  }

  const Product& product_;
  float* scratch_;
  RowTiles tiles_;
  bool copy_ = false;
};

}  // namespace

void product_part(const Product& product, std::int64_t i0, std::int64_t i1, std::int64_t p0, std::int64_t p1,
                  float* scratch) {
  if (i0 >= i1 || p0 >= p1) return;
  const PackedMatrix& b = product.b;
  Worker worker(product, i0, i1, scratch);
  const std::int64_t longest = std::min(b.k, kBlockK);
  const auto panel_bytes = static_cast<std::int64_t>(kPanel * sizeof(float)) * std::max<std::int64_t>(longest, 1);
  const std::int64_t step = std::max<std::int64_t>(kBlockBytes / panel_bytes, 1);
  for (std::int64_t p = p0; p < p1; p += step) {
    const std::int64_t end = std::min(p + step, p1);
    for (std::int64_t block = 0; block < b.blocks(); ++block) {
      const std::int64_t k0 = b.block_start(block);
      const std::int64_t k1 = b.block_start(block + 1);
      const bool last = block + 1 == b.blocks();
      const float* next = nullptr;
      if (!last) {
        next = b.panel(k1, b.block_start(block + 2) - k1, p);
      } else if (end < p1) {
        next = b.panel(0, b.block_start(1), end);
      }
      worker.run({k0, k1 - k0, p, end, last}, next);
    }
  }
}

namespace {

// About how long a core takes, in ns: it multiplies 50 numbers in one, or reads 100 bytes of B.
std::int64_t duration(const Product& product) {
  const std::int64_t elements = product.b.n * std::max<std::int64_t>(product.b.k, 1);
  return std::max(product.m * elements / 50, elements * std::int64_t{sizeof(float)} / 100);
}

// Into how many parts the work is split at most. To wake the others, who still look for work, and to wait for the last
// one takes about two microseconds; then the results that the caches of several cores hold have to come together again.
std::int64_t most_parts(const Product& product, std::int64_t threads) {
  constexpr std::int64_t kWorthwhile = 4000;  // ns
  const std::int64_t moved = product.m * (product.b.k + product.b.n) * std::int64_t{sizeof(float)};
  const std::int64_t cost = 2000 + std::min<std::int64_t>(moved, 128 * 1024) / 14;
  const std::int64_t alone = duration(product);
  return alone / 2 < cost ? 1 : std::min<std::int64_t>(alone / kWorthwhile, 4 * threads);
}

}  // namespace

void product_all(const Product& product, Pool& pool, float* scratch) {
  const PackedMatrix& b = product.b;
  const std::int64_t panels = b.panels();
  const std::int64_t threads = pool.threads();
  const std::int64_t most = threads == 1 ? 1 : most_parts(product, threads);
  if (most < 2) {
    product_part(product, 0, product.m, 0, panels, scratch);
    return;
  }
  // By rows where there are some for each: what threads write then stands apart, and all of them read B, which none
  // writes. Else by panels.
  const std::int64_t period = std::max<std::int64_t>(product.period, 1);
  const std::int64_t units = product.m / period;
  const bool by_panels = panels >= threads && (product.m < kTileRows * threads || units < threads);
  if (by_panels) {
    const std::int64_t parts = std::min(threads, panels);
    pool.parallel(parts, [&](std::int64_t part, int thread) {
      product_part(product, 0, product.m, part * panels / parts, (part + 1) * panels / parts,
                   scratch + thread * kRowScratch);
    });
    return;
  }
  const std::int64_t tiles =
      (units + (product.period == 0 ? kTileRows : 1) - 1) / (product.period == 0 ? kTileRows : 1);
  const std::int64_t parts = std::min(tiles, std::max(most / threads * threads, threads));
  pool.parallel(parts, [&](std::int64_t part, int thread) {
    product_part(product, part * units / parts * period, (part + 1) * units / parts * period, 0, panels,
                 scratch + thread * kRowScratch);
  });
}

}  // namespace wb::engine::WB_ISA::dense
