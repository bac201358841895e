// A left-hand side that is a matrix in memory.
#pragma once

#include "engine/operators/quantized_matmul/left.h"
#include "engine/operators/quantized_matmul/product.h"

namespace wb::engine::WB_ISA::quantized {

// Rows of A where they stand.
struct MatrixRows {
  const std::uint8_t* data;
  std::int64_t k, lda;
  std::uint8_t flip;

  [[nodiscard]] LeftRows source() const {
    return {this, [](const void* self, std::int64_t i, int rows, DotLeft* to, std::int64_t ld) {
              const auto& matrix = *static_cast<const MatrixRows*>(self);
              for (int r = 0; r < rows; ++r) {
                copy_left(matrix.data + (i + r) * matrix.lda, matrix.k, matrix.flip, to + r * ld);
              }
            }};
  }
};

}  // namespace wb::engine::WB_ISA::quantized
