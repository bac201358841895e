// Pointwise programs with quantized operands. Any program can be computed on floats in buffers; those that occur often
// have methods of their own:
//
//   one operand                  a table of all 256 integers, made by the program itself
//   x + y, x - y, x y, ... and   in registers
//   a clamp
#pragma once

#include <cstdint>

#include "engine/operator.h"

namespace wb::engine::WB_ISA {

class QuantizedMethod {
 public:
  // Chooses a method, if one suits. Fails when there is no memory.
  Error prepare(PrepareContext& context);
  // False when there is none, or only a part of the program is wanted.
  [[nodiscard]] bool run(const RunContext& context) const;

 private:
  enum class Kind : std::uint8_t { None, Table, Pair };

  Kind kind_ = Kind::None;
  const std::uint8_t* table_ = nullptr;
};

// n integers of `out` from element `at` on become what stands for the numbers.
void quantize_run(const TensorView& out, std::int64_t at, const float* numbers, std::int64_t n);

// Numbers of a rectangle of rows x cols, from element `at` on, whose rows are `row` elements apart and columns `col`.
void fill_quantized(const TensorView& input, std::int64_t at, std::int64_t row, std::int64_t col, std::int64_t rows,
                    std::int64_t cols, float* to);

}  // namespace wb::engine::WB_ISA
