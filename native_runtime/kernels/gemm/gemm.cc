#include "kernels/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/dense.h"

namespace wb::kernels::WB_ISA {
namespace {

template <typename T, int V, std::size_t... R>
constexpr std::array<TileFunction<T>, sizeof...(R)> tile_functions(std::index_sequence<R...> /*rows*/) {
  return {tile_product<T, static_cast<int>(R) + 1, V>...};
}

// By rows - 1.
template <typename T>
constexpr auto kTiles = tile_functions<T, kTileVectors>(std::make_index_sequence<kTileRows>());
template <typename T>
constexpr auto kWideTiles = tile_functions<T, kWideVectors>(std::make_index_sequence<kWideRows>());

// A tile whose columns do not fill vectors, or do not stand next to each other in C, goes through a copy.
template <typename T>
void store_part(const T* tile, int tile_row, int rows, int cols, const TileOut<T>& out, std::int64_t c_col) {
  for (int r = 0; r < rows; ++r) {
    T* c = out.c + r * out.c_row;
    const T bias = out.row_bias != nullptr ? out.row_bias[r] : T{0};
    for (int j = 0; j < cols; ++j) {
      T x = tile[r * tile_row + j] * out.alpha + bias;
      if (out.col_bias != nullptr) x += out.col_bias[j];
      if (out.accumulate) x += c[j * c_col];
      c[j * c_col] = x;
    }
  }
}

template <typename T>
struct Block {
  const Gemm<T>& product;
  std::int64_t k0, kc;

  [[nodiscard]] TileOut<T> out(std::int64_t i, std::int64_t j) const {
    TileOut<T> out;
    out.c = product.c + i * product.c_row + j * product.c_col;
    out.c_row = product.c_row;
    out.alpha = product.alpha;
    out.accumulate = product.accumulate || k0 > 0;
    if (k0 == 0 && product.row_bias != nullptr) out.row_bias = product.row_bias + i;
    if (k0 == 0 && product.col_bias != nullptr) out.col_bias = product.col_bias + j;
    return out;
  }

  void tile(std::int64_t i, int rows, std::int64_t j, int cols, const T* a, std::int64_t a_row, const T* b,
            std::int64_t b_row) const {
    const TileOut<T> target = out(i, j);
    const TileFunction<T> function = kTiles<T>[rows - 1];
    if (cols == kPanel<T> && product.c_col == 1) {
      function(kc, a, a_row, b, b_row, target);
      return;
    }
    alignas(kVectorBytes) T part[kTileRows * kPanel<T>];
    TileOut<T> plain;
    plain.c = part;
    plain.c_row = kPanel<T>;
    function(kc, a, a_row, b, b_row, plain);
    store_part(part, kPanel<T>, rows, cols, target, product.c_col);
  }
};

template <typename T>
void copy_rows(const Gemm<T>& product, std::int64_t i, int rows, std::int64_t k0, std::int64_t kc, T* to) {
  const T* from = product.a + i * product.a_row + k0 * product.a_col;
  for (std::int64_t kk = 0; kk < kc; ++kk) {
    for (int r = 0; r < rows; ++r) to[r * kc + kk] = from[r * product.a_row + kk * product.a_col];
  }
}

// Few rows: B is read once, in long rows, without packing.
template <typename T>
std::int64_t wide_columns(const Gemm<T>& product) {
  constexpr int kWide = kWideVectors * kLanes<T>;
  const auto rows = static_cast<int>(product.m);
  std::int64_t j = 0;
  for (; j + kWide <= product.n; j += kWide) {
    const Block<T> block{product, 0, product.k};
    kWideTiles<T>[rows - 1](product.k, product.a, product.a_row, product.b.direct + j, product.b.direct_row,
                            block.out(0, j));
  }
  return j;
}

template <typename T>
void pack_strided(const void* self, std::int64_t k0, std::int64_t kc, std::int64_t j0, int nc, T* panel) {
  const auto& matrix = *static_cast<const StridedMatrix<T>*>(self);
  const T* from = matrix.data + k0 * matrix.row + j0 * matrix.col;
  constexpr int kWidth = kPanel<T>;
  if (matrix.col == 1 && nc == kWidth) {
    for (std::int64_t kk = 0; kk < kc; ++kk) {
      for (int v = 0; v < kTileVectors; ++v) store(panel + v * kLanes<T>, load(from + v * kLanes<T>));
      panel += kWidth;
      from += matrix.row;
    }
    return;
  }
  // Blocks of rows, so that a cache line of the source is used up while it is near.
  constexpr std::int64_t kRows = 16;
  for (std::int64_t start = 0; start < kc; start += kRows) {
    const std::int64_t end = std::min(start + kRows, kc);
    for (int j = 0; j < nc; ++j) {
      const T* column = from + j * matrix.col;
      for (std::int64_t kk = start; kk < end; ++kk) panel[kk * kWidth + j] = column[kk * matrix.row];
    }
    for (int j = nc; j < kWidth; ++j) {
      for (std::int64_t kk = start; kk < end; ++kk) panel[kk * kWidth + j] = T{0};
    }
  }
}

// An empty sum.
template <typename T>
void bias_only(const Gemm<T>& product) {
  for (std::int64_t i = 0; i < product.m; ++i) {
    for (std::int64_t j = 0; j < product.n; ++j) {
      T& c = product.c[i * product.c_row + j * product.c_col];
      T x = product.accumulate ? c : T{0};
      if (product.row_bias != nullptr) x += product.row_bias[i];
      if (product.col_bias != nullptr) x += product.col_bias[j];
      c = x;
    }
  }
}

// Rows of equal-sized tiles: 13 rows are 7 + 6, not 12 + 1.
struct RowTiles {
  std::int64_t m, count;
  explicit RowTiles(std::int64_t rows) : m(rows), count((rows + kTileRows - 1) / kTileRows) {}
  [[nodiscard]] std::int64_t start(std::int64_t t) const { return t * m / count; }
};

}  // namespace

template <typename T>
PanelSource<T> panels_of(const StridedMatrix<T>& matrix) {
  PanelSource<T> source;
  source.self = &matrix;
  source.pack = pack_strided<T>;
  if (matrix.col == 1) {
    source.direct = matrix.data;
    source.direct_row = matrix.row;
  }
  return source;
}

template <typename T>
std::size_t gemm_scratch(std::int64_t n, std::int64_t k) {
  const std::int64_t panels = std::min((n + kPanel<T> - 1) / kPanel<T>, kBlockPanels);
  const std::int64_t elements = std::min(k, kBlockK) * (panels * kPanel<T> + kTileRows);
  return round_scratch(static_cast<std::size_t>(elements) * sizeof(T)) + kScratchAlignment;
}

template <typename T>
void gemm(const Gemm<T>& product, std::byte* scratch) {
  if (product.k == 0) {
    bias_only(product);
    return;
  }
  constexpr int kWidth = kPanel<T>;
  const bool copy_a = product.a_col != 1;
  const bool direct = product.b.direct != nullptr && product.m <= 2 * kTileRows;
  std::int64_t first = 0;
  if (direct && !copy_a && product.c_col == 1 && product.m <= kWideRows) first = wide_columns(product);

  T* const packed = reinterpret_cast<T*>(scratch);
  const RowTiles tiles(product.m);
  for (std::int64_t j0 = first; j0 < product.n; j0 += kBlockPanels * kWidth) {
    const std::int64_t nc = std::min(product.n - j0, kBlockPanels * kWidth);
    const std::int64_t panels = (nc + kWidth - 1) / kWidth;
    for (std::int64_t k0 = 0; k0 < product.k; k0 += kBlockK) {
      const std::int64_t kc = std::min(product.k - k0, kBlockK);
      const Block<T> block{product, k0, kc};
      const bool whole = nc == panels * kWidth;
      for (std::int64_t p = direct ? (whole ? panels : panels - 1) : 0; p < panels; ++p) {
        const auto cols = static_cast<int>(std::min<std::int64_t>(nc - p * kWidth, kWidth));
        product.b.pack(product.b.self, k0, kc, j0 + p * kWidth, cols, packed + p * kc * kWidth);
      }
      T* const a_copy = packed + panels * kc * kWidth;
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t i = tiles.start(t);
        const auto rows = static_cast<int>(tiles.start(t + 1) - i);
        const T* a = product.a + i * product.a_row + k0;
        std::int64_t a_row = product.a_row;
        if (copy_a) {
          copy_rows(product, i, rows, k0, kc, a_copy);
          a = a_copy;
          a_row = kc;
        }
        for (std::int64_t p = 0; p < panels; ++p) {
          const std::int64_t j = j0 + p * kWidth;
          const auto cols = static_cast<int>(std::min<std::int64_t>(nc - p * kWidth, kWidth));
          if (direct && cols == kWidth) {
            block.tile(i, rows, j, cols, a, a_row, product.b.direct + k0 * product.b.direct_row + j,
                       product.b.direct_row);
          } else {
            block.tile(i, rows, j, cols, a, a_row, packed + p * kc * kWidth, kWidth);
          }
        }
      }
    }
  }
}

template <typename T>
void dot_columns(std::int64_t n, std::int64_t k, const T* x, const T* b, std::int64_t column, T alpha, const T* bias,
                 T* y, std::int64_t y_step, bool accumulate) {
  constexpr int kColumns = 4;
  constexpr int kStep = kLanes<T>;
  const std::int64_t whole = k / kStep * kStep;
  const auto rest = static_cast<int>(k - whole);
  for (std::int64_t j = 0; j < n; j += kColumns) {
    const auto cols = static_cast<int>(std::min<std::int64_t>(n - j, kColumns));
    const T* rows[kColumns];
    for (int c = 0; c < kColumns; ++c) rows[c] = b + (j + std::min(c, cols - 1)) * column;
    Vec<T> acc[kColumns] = {};
    for (std::int64_t kk = 0; kk < whole; kk += kStep) {
      const Vec<T> xv = load(x + kk);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) acc[c] = fma(xv, load(rows[c] + kk), acc[c]);
    }
    if (rest > 0) {
      const Vec<T> xv = load_first(x + whole, rest);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) acc[c] = fma(xv, load_first(rows[c] + whole, rest), acc[c]);
    }
    for (int c = 0; c < cols; ++c) {
      T value = sum_lanes<T>(acc[c]) * alpha;
      if (bias != nullptr) value += bias[j + c];
      T& target = y[(j + c) * y_step];
      target = accumulate ? target + value : value;
    }
  }
}

#define WB_GEMM(T)                                                                                            \
  template PanelSource<T> panels_of<T>(const StridedMatrix<T>&);                                              \
  template std::size_t gemm_scratch<T>(std::int64_t, std::int64_t);                                           \
  template void gemm<T>(const Gemm<T>&, std::byte*);                                                          \
  template void dot_columns<T>(std::int64_t, std::int64_t, const T*, const T*, std::int64_t, T, const T*, T*, \
                               std::int64_t, bool);
WB_GEMM(float)
WB_GEMM(double)

extern const KernelTable table_gemm_gemm;
const KernelTable table_gemm_gemm = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
