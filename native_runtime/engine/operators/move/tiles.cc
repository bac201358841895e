#include "engine/operators/move/tiles.h"

#include <algorithm>

#include "engine/operators/common/lanes.h"

namespace wb::engine::WB_ISA {
namespace {

// In each group of 2 kStep lanes: the lower (upper) halves of a and b side by side.
template <int kStep, bool kLower>
constexpr Ints order() {
  Ints lanes{};
  for (int i = 0; i < kFloats; ++i) {
    const bool second = (i & kStep) != 0;
    lanes[i] = kLower ? (second ? i - kStep + kFloats : i) : (second ? i + kFloats : i + kStep);
  }
  return lanes;
}

// v[i][j] becomes v[j][i]: blocks off the diagonal change places, from the largest to single elements.
template <int kStep>
[[gnu::always_inline]] inline void transpose_vectors(Floats* v) {
  if constexpr (kStep > 0) {
    const Ints lower = order<kStep, true>();
    const Ints upper = order<kStep, false>();
#pragma GCC unroll 16
    for (int i = 0; i < kFloats; ++i) {
      if ((i & kStep) != 0) continue;
      const Floats a = v[i];
      const Floats b = v[i + kStep];
      v[i] = __builtin_shuffle(a, b, lower);
      v[i + kStep] = __builtin_shuffle(a, b, upper);
    }
    transpose_vectors<kStep / 2>(v);
  }
}

void whole_tile(const float* in, std::int64_t in_row, float* out, std::int64_t out_row) {
  Floats v[kFloats];
#pragma GCC unroll 16
  for (int j = 0; j < kFloats; ++j) v[j] = load(in + j * in_row);
  transpose_vectors<kFloats / 2>(v);
#pragma GCC unroll 16
  for (int i = 0; i < kFloats; ++i) store(out + i * out_row, v[i]);
}

void part_tile(const float* in, std::int64_t in_row, float* out, std::int64_t out_row, int rows, int cols) {
  Floats v[kFloats] = {};
  for (int j = 0; j < cols; ++j) v[j] = rows == kFloats ? load(in + j * in_row) : load_first(in + j * in_row, rows);
  transpose_vectors<kFloats / 2>(v);
  for (int i = 0; i < rows; ++i) {
    if (cols == kFloats) {
      store(out + i * out_row, v[i]);
    } else {
      store_first(out + i * out_row, v[i], cols);
    }
  }
}

// Few dense columns, as of the channels of a photograph: elements go side by side in the order of the result.
template <int kCols>
void few_columns(const float* in, std::int64_t in_row, float* out, std::int64_t rows) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (int j = 0; j < kCols; ++j) out[i * kCols + j] = in[j * in_row + i];
  }
}
template <int kRows>
void few_rows(const float* in, float* out, std::int64_t out_row, std::int64_t cols) {
  for (std::int64_t j = 0; j < cols; ++j) {
    for (int i = 0; i < kRows; ++i) out[i * out_row + j] = in[j * kRows + i];
  }
}

bool few(const float* in, std::int64_t in_row, float* out, std::int64_t out_row, std::int64_t rows, std::int64_t cols) {
  if (out_row == cols && cols == 2) return few_columns<2>(in, in_row, out, rows), true;
  if (out_row == cols && cols == 3) return few_columns<3>(in, in_row, out, rows), true;
  if (out_row == cols && cols == 4) return few_columns<4>(in, in_row, out, rows), true;
  if (in_row == rows && rows == 2) return few_rows<2>(in, out, out_row, cols), true;
  if (in_row == rows && rows == 3) return few_rows<3>(in, out, out_row, cols), true;
  if (in_row == rows && rows == 4) return few_rows<4>(in, out, out_row, cols), true;
  return false;
}

void transpose_floats(const float* in, std::int64_t in_row, float* out, std::int64_t out_row, std::int64_t rows,
                      std::int64_t cols) {
  if (few(in, in_row, out, out_row, rows, cols)) return;
  // Whole cache lines of 16 floats on both sides.
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (std::int64_t j0 = 0; j0 < cols; j0 += kBlock) {
      for (std::int64_t i = i0; i < std::min(rows, i0 + kBlock); i += kFloats) {
        for (std::int64_t j = j0; j < std::min(cols, j0 + kBlock); j += kFloats) {
          const auto h = static_cast<int>(std::min<std::int64_t>(kFloats, rows - i));
          const auto w = static_cast<int>(std::min<std::int64_t>(kFloats, cols - j));
          if (h == kFloats && w == kFloats) {
            whole_tile(in + j * in_row + i, in_row, out + i * out_row + j, out_row);
          } else {
            part_tile(in + j * in_row + i, in_row, out + i * out_row + j, out_row, h, w);
          }
        }
      }
    }
  }
}

template <typename T>
void transpose_scalars(const std::byte* from, std::int64_t in_row, std::byte* to, std::int64_t out_row,
                       std::int64_t rows, std::int64_t cols) {
  const T* in = reinterpret_cast<const T*>(from);
  T* out = reinterpret_cast<T*>(to);
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (std::int64_t j0 = 0; j0 < cols; j0 += kBlock) {
      for (std::int64_t i = i0; i < std::min(rows, i0 + kBlock); ++i) {
        for (std::int64_t j = j0; j < std::min(cols, j0 + kBlock); ++j) out[i * out_row + j] = in[j * in_row + i];
      }
    }
  }
}

}  // namespace

void transpose_tiles(const std::byte* in, std::int64_t in_row, std::byte* out, std::int64_t out_row, std::int64_t rows,
                     std::int64_t cols, std::size_t element) {
  switch (element) {
    case 1: return transpose_scalars<std::uint8_t>(in, in_row, out, out_row, rows, cols);
    case 2: return transpose_scalars<std::uint16_t>(in, in_row, out, out_row, rows, cols);
    case 4:
      return transpose_floats(reinterpret_cast<const float*>(in), in_row, reinterpret_cast<float*>(out), out_row, rows,
                              cols);
    default: return transpose_scalars<std::uint64_t>(in, in_row, out, out_row, rows, cols);
  }
}

}  // namespace wb::engine::WB_ISA
