#include "engine/operators/matmul/packed.h"

#include <algorithm>
#include <cstring>

#include "engine/operators/matmul/transpose.h"

namespace wb::engine::WB_ISA::dense {
namespace {

#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13  // kernels/common/types.h
using Half = __fp16;
#else
using Half = _Float16;
#endif

template <typename T>
Vector load_floats(const T* p, int n) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return n == kWidth ? simd::load(p) : simd::load_first(p, n);
  } else {
    Vector v{};
    for (int i = 0; i < n; ++i) v[i] = static_cast<float>(p[i]);
    return v;
  }
}

// One vector of columns of B, all rows of all blocks.
template <typename T>
class ColumnPacker {
 public:
  ColumnPacker(const PackedMatrix& matrix, const MatrixSource& source, std::int64_t column, float* to)
      : matrix_(matrix), source_(source), place_(matrix, column, to) {
    data_ = static_cast<const T*>(source.data) + column * source.column;
    columns_ = static_cast<int>(std::min<std::int64_t>(matrix.n - column, kWidth));
  }

  void pack() {
    // A column that stands in one piece is read along it, whole vectors of several columns at a time.
    if (source_.column == 1) {
      for (std::int64_t kk = 0; kk < matrix_.k; ++kk) put(kk, load_floats(data_ + source_.offset(kk), columns_));
    } else if (source_.inner_first() || source_.taps_first()) {
      transposed(!source_.inner_first());
    } else {
      single();
    }
  }

 private:
  void put(std::int64_t kk, Vector v) { place_.store(kk, 0, v); }

  void transposed(bool taps_first) {
    std::int64_t tap = 0;
    std::int64_t inner = 0;
    for (std::int64_t at = 0; at < matrix_.k; at += kWidth) {
      const auto count = static_cast<int>(std::min<std::int64_t>(matrix_.k - at, kWidth));
      Vector v[kWidth];
      for (int j = 0; j < kWidth; ++j) {
        v[j] = j < columns_ ? load_floats(data_ + j * source_.column + at, count) : Vector{};
      }
      transpose(v);
      for (int i = 0; i < count; ++i) {
        if (!taps_first) {
          put(at + i, v[i]);
          continue;
        }
        put(tap * source_.inner + inner, v[i]);
        if (++tap == source_.taps()) {
          tap = 0;
          ++inner;
        }
      }
    }
  }

  void single() {
    for (std::int64_t kk = 0; kk < matrix_.k; ++kk) {
      const T* from = data_ + source_.offset(kk);
      Vector v{};
      for (int j = 0; j < columns_; ++j) v[j] = static_cast<float>(from[j * source_.column]);
      put(kk, v);
    }
  }

  const PackedMatrix& matrix_;
  const MatrixSource& source_;
  PackedColumn place_;
  const T* data_;
  int columns_;
};

template <typename T>
void pack(const PackedMatrix& matrix, const MatrixSource& source, std::int64_t first, std::int64_t last, float* to) {
  const std::int64_t end = std::min(last * kPanel, matrix.n);
  for (std::int64_t column = first * kPanel; column < end; column += kWidth) {
    ColumnPacker<T>(matrix, source, column, to).pack();
  }
}

// Vectors over columns of `count` elements that stand next to each other; vector i goes to to[i step].
template <typename T>
void transpose_run(const T* from, std::int64_t column, int columns, int count, int step, Vector* to) {
  for (int at = 0; at < count; at += kWidth) {
    const int part = std::min(count - at, kWidth);
    Vector v[kWidth];
    for (int j = 0; j < kWidth; ++j) v[j] = j < columns ? load_floats(from + j * column + at, part) : Vector{};
    transpose(v);
    for (int i = 0; i < part; ++i) to[(at + i) * step] = v[i];
  }
}

template <typename T>
void gather(const MatrixSource& source, std::int64_t column, int columns, std::int64_t first, int count, Vector* to) {
  const T* from = static_cast<const T*>(source.data) + column * source.column;
  const auto taps = static_cast<int>(source.taps());
  if (source.taps_first()) {
    transpose_run(from + first * taps, source.column, columns, count * taps, 1, to);
    return;
  }
  for (int t = 0; t < taps; ++t) {
    const T* tap = from + source.offset(t * source.inner + first);
    if (source.row == 1) {
      transpose_run(tap, source.column, columns, count, taps, to + t);
      continue;
    }
    for (int i = 0; i < count; ++i) {
      Vector v{};
      for (int j = 0; j < columns; ++j) v[j] = static_cast<float>(tap[i * source.row + j * source.column]);
      to[i * taps + t] = v;
    }
  }
}

}  // namespace

void PackedColumn::enter(std::int64_t kk) {
  const std::int64_t count = matrix_.blocks();
  std::int64_t block = kk * count / std::max<std::int64_t>(matrix_.k, 1);
  while (block > 0 && matrix_.block_start(block) > kk) --block;
  while (block + 1 < count && matrix_.block_start(block + 1) <= kk) ++block;
  start_ = matrix_.block_start(block);
  end_ = matrix_.block_start(block + 1);
  base_ = to_ + start_ * matrix_.columns() + panel_ * kPanel * (end_ - start_) + lane_;
}

void gather_taps(const MatrixSource& source, std::int64_t column, int columns, std::int64_t first, int count,
                 Vector* to) {
  if (source.dtype == ScalarType::Half) {
    gather<Half>(source, column, columns, first, count, to);
  } else {
    gather<float>(source, column, columns, first, count, to);
  }
}

void pack_matrix(const PackedMatrix& matrix, const MatrixSource& source, std::int64_t first_panel,
                 std::int64_t last_panel, float* to) {
  if (source.dtype == ScalarType::Half) {
    pack<Half>(matrix, source, first_panel, last_panel, to);
  } else {
    pack<float>(matrix, source, first_panel, last_panel, to);
  }
}

void convert_floats(const void* from, ScalarType dtype, std::int64_t n, float* to) {
  if (dtype != ScalarType::Half) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  const auto* halves = static_cast<const Half*>(from);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(halves[i]);
}

}  // namespace wb::engine::WB_ISA::dense
