// What is done to the elements of a node's first output before they are stored (Node::post). Made once a run, then used
// by all threads:
//
//   Epilogue epilogue(context);
//   float low, high;
//   const bool clamps = epilogue.take_clamp(&low, &high);   // while the values are in registers
//   ...                                                     // compute a tile, store it
//   if (!epilogue.empty()) epilogue.apply(tile, ld, row, rows, col, cols);
#pragma once

#include "engine/operator.h"
#include "engine/operators/common/program.h"

namespace wb::engine::WB_ISA {

// May an epilogue hold this step after those that the node has? The `fuses` of operators that use Epilogue.
[[nodiscard]] bool epilogue_fuses(const Node& node, const PointwiseStep& step);

class Epilogue {
 public:
  // Output 0 is a matrix of as many columns as its last dimension has. Operands have its shape, or one row, or one
  // element; they are floats, or integers with one scale, which become numbers when they are needed.
  explicit Epilogue(const RunContext& context);

  [[nodiscard]] bool empty() const { return program_.count() == 0; }
  // If the next step is min(max(x, low), high): leaves it to the caller.
  [[nodiscard]] bool take_clamp(float* low, float* high);
  // If the next step adds an operand of the output's shape: leaves it to the caller.
  [[nodiscard]] bool take_residual(const float** data);

  // Does the steps that are left in place on a tile whose first element is at (row, col) of the output.
  void apply(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
             std::int64_t cols) const;
  // On the whole output.
  void apply_all(float* out) const { apply(out, columns_, 0, rows_, 0, columns_); }

 private:
  enum class Kind : std::uint8_t { Full, Vector, Scalar };
  // `numbers`: room for the blocks of operands that are integers.
  void apply_block(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
                   std::int64_t cols, float* numbers) const;
  void apply_blocks(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
                    std::int64_t cols, float* numbers) const;
  void apply_integers(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
                      std::int64_t cols) const;
  // Operand k from element `at` on, rows a result's row apart, as numbers.
  Place dequantize(int k, std::int64_t at, std::int64_t rows, std::int64_t cols, float* to) const;

  StepProgram program_;
  std::int64_t columns_ = 1, rows_ = 0;
  int input_count_ = 0;
  bool splats_ = false, integers_ = false;
  Kind kinds_[StepProgram::kMaxInputs];
  const TensorView* quantized_[StepProgram::kMaxInputs];  // of integers, else null
  float scalars_[StepProgram::kMaxInputs];                // of integers that are one element
  const float* data_[StepProgram::kMaxInputs];
};

}  // namespace wb::engine::WB_ISA
