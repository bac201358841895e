// Matrix product of row-blocked, cache-blocked panels: C = alpha A B + biases (+ C).
//
// A is m x k with any strides, B comes from a source that can give panels of it, C has any strides. The loops are those
// of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008): a block of B (kBlockK rows of
// some panels) is packed for the second-level cache, and tiles of C run over it.
#pragma once

#include "kernels/gemm/micro.h"
#include "kernels/registry.h"

namespace wb::kernels::WB_ISA {

template <typename T>
inline constexpr int kPanel = kTileVectors * kLanes<T>;  // columns of a panel
inline constexpr std::int64_t kBlockK = 384;
inline constexpr std::int64_t kBlockPanels = 10;

// Writes rows [k0, k0 + kc) of columns [j0, j0 + nc), nc <= kPanel, to panel[kk kPanel + j]; columns past nc are 0 or
// anything finite.
template <typename T>
struct PanelSource {
  const void* self = nullptr;
  void (*pack)(const void* self, std::int64_t k0, std::int64_t kc, std::int64_t j0, int nc, T* panel) = nullptr;
  // If not null, B stands in memory with its columns next to each other, rows `direct_row` apart.
  const T* direct = nullptr;
  std::int64_t direct_row = 0;
};

template <typename T>
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_col = 1;
  PanelSource<T> b;
  T* c = nullptr;
  std::int64_t c_row = 0, c_col = 1;
  const T* row_bias = nullptr;
  const T* col_bias = nullptr;
  T alpha = 1;
  bool accumulate = false;
};

// Scratch bytes that any product with these upper bounds needs.
template <typename T>
[[nodiscard]] std::size_t gemm_scratch(std::int64_t n, std::int64_t k);

template <typename T>
void gemm(const Gemm<T>& product, std::byte* scratch);

// A matrix with strides as a source.
template <typename T>
struct StridedMatrix {
  const T* data;
  std::int64_t row, col;
};
template <typename T>
[[nodiscard]] PanelSource<T> panels_of(const StridedMatrix<T>& matrix);

// y[j] = alpha dot(x, column j of B) + bias, where columns of B stand `column` apart and are dense.
template <typename T>
void dot_columns(std::int64_t n, std::int64_t k, const T* x, const T* b, std::int64_t column, T alpha, const T* bias,
                 T* y, std::int64_t y_step, bool accumulate);

}  // namespace wb::kernels::WB_ISA
