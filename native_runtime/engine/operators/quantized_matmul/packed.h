// A right-hand side B (k x n) of integers, arranged for tiles: panels of kPanelColumns columns (the last one may have
// fewer vectors), in them steps of kDotDepth rows, in a step the vectors of the panel as kernels/dot.h wants them. Of 4
// bits, two steps share their bytes: the first one has the low halves. What is past k or n stands for 0.
#pragma once

#include "engine/operator.h"
#include "engine/operators/common/integer_lanes.h"
#include "engine/operators/matmul/packed.h"
#include "kernels/dot.h"

namespace wb::engine::WB_ISA::quantized {

using kernels::WB_ISA::dot;
using kernels::WB_ISA::dot_left;
using kernels::WB_ISA::dot_right;
using kernels::WB_ISA::DotLeft;
using kernels::WB_ISA::kDotBytes;
using kernels::WB_ISA::kDotDepth;
using kernels::WB_ISA::kDotLeftUnsigned;

inline constexpr int kPanelVectors = kernels::WB_ISA::kVectorRegisters == 32 ? 4 : 2;
inline constexpr std::int64_t kPanelColumns = kPanelVectors * kFloats;
// Rows of the left-hand side are filled up to a multiple of this.
inline constexpr std::int64_t kDepthUnit = 2 * kDotDepth;

struct PackedIntegers {
  const std::int8_t* data = nullptr;
  std::int64_t k = 0, n = 0;
  bool nibbles = false;
  std::int32_t nibble_zero = 0;  // what stands for 0

  [[nodiscard]] std::int64_t columns() const { return (n + kFloats - 1) / kFloats * kFloats; }
  [[nodiscard]] std::int64_t panels() const { return (n + kPanelColumns - 1) / kPanelColumns; }
  [[nodiscard]] int panel_columns(std::int64_t panel) const {
    const std::int64_t left = n - panel * kPanelColumns;
    return static_cast<int>(left < kPanelColumns ? left : kPanelColumns);
  }
  [[nodiscard]] int panel_vectors(std::int64_t panel) const { return (panel_columns(panel) + kFloats - 1) / kFloats; }
  // A multiple of two where two share their bytes.
  [[nodiscard]] std::int64_t steps() const {
    const std::int64_t unit = nibbles ? kDepthUnit : kDotDepth;
    return (k + unit - 1) / unit * (unit / kDotDepth);
  }
  [[nodiscard]] std::int64_t depth_bytes() const { return steps() * kDotDepth / (nibbles ? 2 : 1); }  // of a column
  [[nodiscard]] std::int64_t bytes() const { return depth_bytes() * columns(); }
  [[nodiscard]] const std::int8_t* panel(std::int64_t index) const {
    return data + index * kPanelColumns * depth_bytes();
  }
};

// Element (kk, j), less what stands for 0.
[[nodiscard]] std::int32_t element_of(const PackedIntegers& matrix, std::int64_t kk, std::int64_t j);

// Where the integers of B stand: element (kk, j) at data[source.offset(kk) + j source.column]. The dtype is Char or
// Byte, of which 128 is taken. With `nibbles` column j is a row of a matrix of 4 bits, `source.column` bytes long.
struct IntegerSource {
  dense::MatrixSource source;
  bool nibbles = false;
};

// Writes the panels [first, last) to `to` (matrix.bytes() bytes) and the sums of their columns to `sums`
// (matrix.columns() of them; less `nibble_zero` for each element of 4 bits).
void pack_integers(const PackedIntegers& matrix, const IntegerSource& source, std::int64_t first, std::int64_t last,
                   std::int8_t* to, std::int32_t* sums);

}  // namespace wb::engine::WB_ISA::quantized
