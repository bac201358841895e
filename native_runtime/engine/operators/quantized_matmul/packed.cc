#include "engine/operators/quantized_matmul/packed.h"

#include <algorithm>
#include <cstring>

namespace wb::engine::WB_ISA::quantized {
namespace {

constexpr std::int64_t kChunk = 1024;  // elements of a column at a time
static_assert(kChunk % kDepthUnit == 0);

class ColumnPacker {
 public:
  ColumnPacker(const PackedIntegers& matrix, const IntegerSource& source, std::int64_t column, std::int8_t* to)
      : matrix_(matrix), source_(source), column_(column) {
    const std::int64_t panel = column / kPanelColumns;
    step_ = matrix.panel_vectors(panel) * kDotBytes;
    to_ = to + panel * kPanelColumns * matrix.depth_bytes() + column % kPanelColumns * kDotDepth;
  }

  // Returns the sum of the column. One past the end has no elements.
  std::int32_t pack() {
    std::uint32_t sum = 0;
    const std::int64_t padded = matrix_.steps() * kDotDepth;
    std::int8_t chunk[kChunk];
    for (std::int64_t k0 = 0; k0 < padded; k0 += kChunk) {
      const std::int64_t count = std::min(kChunk, padded - k0);
      const std::int64_t real = column_ < matrix_.n ? std::clamp<std::int64_t>(matrix_.k - k0, 0, count) : 0;
      gather(k0, real, chunk);
      std::fill(chunk + real, chunk + count, static_cast<std::int8_t>(matrix_.nibbles ? matrix_.nibble_zero : 0));
      for (std::int64_t i = 0; i < real; ++i) {
        sum += static_cast<std::uint32_t>(chunk[i] - (matrix_.nibbles ? matrix_.nibble_zero : 0));
      }
      if (matrix_.nibbles) {
        spread_nibbles(k0, count, chunk);
      } else {
        spread(k0, count, chunk);
      }
    }
    return static_cast<std::int32_t>(sum);
  }

 private:
  void gather(std::int64_t k0, std::int64_t count, std::int8_t* to) const {
    const dense::MatrixSource& s = source_.source;
    if (source_.nibbles) {
      const auto* row = static_cast<const std::uint8_t*>(s.data) + column_ * s.column;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint8_t pair = row[(k0 + i) / 2];
        to[i] = static_cast<std::int8_t>((k0 + i) % 2 == 0 ? pair & 15 : pair >> 4);
      }
      return;
    }
    const auto* from = static_cast<const std::int8_t*>(s.data) + column_ * s.column;
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t kk = k0 + i;
      const std::int64_t run = std::min(count - i, s.inner - kk % s.inner);  // up to the next tap
      const std::int8_t* p = from + s.offset(kk);
      if (s.row == 1) {
        std::memcpy(to + i, p, static_cast<std::size_t>(run));
      } else {
        for (std::int64_t r = 0; r < run; ++r) to[i + r] = p[r * s.row];
      }
      i += run;
    }
    if (s.dtype != ScalarType::Byte) return;
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::int8_t>(to[i] ^ -128);
  }

  void spread(std::int64_t k0, std::int64_t count, const std::int8_t* chunk) const {
    std::int8_t* to = to_ + k0 / kDotDepth * step_;
    for (std::int64_t i = 0; i < count; i += kDotDepth, to += step_) std::memcpy(to, chunk + i, kDotDepth);
  }

  void spread_nibbles(std::int64_t k0, std::int64_t count, const std::int8_t* chunk) const {
    std::int8_t* to = to_ + k0 / kDepthUnit * step_;
    for (std::int64_t i = 0; i < count; i += kDepthUnit, to += step_) {
      for (std::int64_t d = 0; d < kDotDepth; ++d) {
        to[d] = static_cast<std::int8_t>(chunk[i + d] | chunk[i + kDotDepth + d] << 4);
      }
    }
  }

  const PackedIntegers& matrix_;
  const IntegerSource& source_;
  std::int64_t column_, step_;
  std::int8_t* to_;
};

}  // namespace

std::int32_t element_of(const PackedIntegers& matrix, std::int64_t kk, std::int64_t j) {
  const std::int64_t panel = j / kPanelColumns;
  const std::int64_t unit = matrix.nibbles ? kDepthUnit : kDotDepth;
  const std::int8_t* at = matrix.panel(panel) + kk / unit * matrix.panel_vectors(panel) * kDotBytes +
                          j % kPanelColumns * kDotDepth + kk % kDotDepth;
  if (!matrix.nibbles) return *at;
  const auto pair = static_cast<std::uint8_t>(*at);
  return (kk % unit < kDotDepth ? pair & 15 : pair >> 4) - matrix.nibble_zero;
}

void pack_integers(const PackedIntegers& matrix, const IntegerSource& source, std::int64_t first, std::int64_t last,
                   std::int8_t* to, std::int32_t* sums) {
  const std::int64_t end = std::min(last * kPanelColumns, matrix.columns());
  for (std::int64_t column = first * kPanelColumns; column < end; ++column) {
    sums[column] = ColumnPacker(matrix, source, column, to).pack();
  }
}

}  // namespace wb::engine::WB_ISA::quantized
