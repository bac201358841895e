#include "engine/operators/common/epilogue.h"

#include <algorithm>

#include "engine/operators/common/quantize.h"

namespace wb::engine::WB_ISA {
namespace {
// A one-element operand is spread over a row of so many.
constexpr std::int64_t kSplat = 128;
// Steps of an epilogue, so that its temporaries fit onto the stack.
constexpr std::size_t kMaxEpilogue = 8;
constexpr int kMaxIntegers = 16;  // operands of integers: two a step
}  // namespace

bool epilogue_fuses(const Node& node, const PointwiseStep& /*step*/) { return node.post.size() < kMaxEpilogue; }

Epilogue::Epilogue(const RunContext& context) {
  if (context.post_count == 0) return;
  const Shape& shape = context.operands.outputs[0].shape;
  columns_ = shape.rank == 0 ? 1 : shape.sizes[shape.rank - 1];
  rows_ = columns_ == 0 ? 0 : shape.numel() / columns_;
  input_count_ = static_cast<int>(context.operands.post_input_count);
  const float* scalars[StepProgram::kMaxInputs] = {};
  for (int k = 0; k < input_count_; ++k) {
    const TensorView& input = context.operands.post_inputs[k];
    const std::int64_t numel = input.shape.numel();
    data_[k] = input.as<const float>();
    kinds_[k] = numel == 1 ? Kind::Scalar : numel == columns_ ? Kind::Vector : Kind::Full;
    quantized_[k] = input.quantization != nullptr && input.quantization->present() ? &input : nullptr;
    integers_ |= quantized_[k] != nullptr;
    if (quantized_[k] != nullptr && kinds_[k] == Kind::Scalar) {
      data_[k] = dequantize(k, 0, 1, 1, scalars_ + k).data;
      quantized_[k] = nullptr;
    }
    if (kinds_[k] == Kind::Scalar) scalars[k] = data_[k];
  }
  program_.build(context.node.post.data(), static_cast<int>(context.post_count), scalars, true);
  for (int k = 0; k < input_count_; ++k) splats_ |= kinds_[k] == Kind::Scalar && program_.uses_input(k);
}

bool Epilogue::take_clamp(float* low, float* high) {
  if (!program_.may_drop_first() || program_.step(0).fn != Fn::Clamp) return false;
  *low = program_.step(0).a;
  *high = program_.step(0).b;
  program_.drop_first();
  return true;
}

bool Epilogue::take_residual(const float** data) {
  if (!program_.may_drop_first() || program_.step(0).fn != Fn::Add) return false;
  const std::uint8_t* operands = program_.step(0).operands;
  const int other = operands[0] >= kInputRegister ? 0 : 1;
  if (operands[other] < kInputRegister || operands[1 - other] >= kInputRegister) return false;
  const int k = operands[other] - kInputRegister;
  if (kinds_[k] != Kind::Full || quantized_[k] != nullptr) return false;
  *data = data_[k];
  program_.drop_first();
  return true;
}

Place Epilogue::dequantize(int k, std::int64_t at, std::int64_t rows, std::int64_t cols, float* to) const {
  const TensorView& view = *quantized_[k];
  const Quantization& q = *view.quantization;
  for (std::int64_t r = 0; r < rows; ++r, at += columns_) {
    if (view.dtype == ScalarType::Byte) {
      dequantize_row(view.as<const std::uint8_t>() + at, cols, q.scale, q.zero_point, to + r * cols);
    } else {
      dequantize_row(view.as<const std::int8_t>() + at, cols, q.scale, q.zero_point, to + r * cols);
    }
  }
  return {to, rows == 1 ? 0 : cols};
}

void Epilogue::apply_block(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
                           std::int64_t cols, float* numbers) const {
  alignas(64) float memory[kMaxEpilogue * StepProgram::kBlock];
  alignas(64) float splats[StepProgram::kMaxInputs * kSplat];
  Place places[StepProgram::kMaxInputs];
  for (int k = 0; k < input_count_; ++k) {
    if (quantized_[k] != nullptr) {
      if (!program_.uses_input(k)) continue;
      const bool full = kinds_[k] == Kind::Full;
      places[k] = dequantize(k, full ? row * columns_ + col : col, full ? rows : 1, cols, numbers);
      numbers += StepProgram::kBlock;
      continue;
    }
    if (kinds_[k] == Kind::Full) {
      places[k] = {data_[k] + row * columns_ + col, columns_};
    } else if (kinds_[k] == Kind::Vector) {
      places[k] = {data_[k] + col, 0};
    } else if (program_.uses_input(k)) {
      places[k] = {splats + k * kSplat, 0};
      std::fill_n(splats + k * kSplat, cols, *data_[k]);
    }
  }
  program_.evaluate({tile, ld}, places, tile, ld, rows, cols, memory);
}

void Epilogue::apply(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
                     std::int64_t cols) const {
  if (empty() || rows <= 0 || cols <= 0) return;
  if (integers_) {
    apply_integers(tile, ld, row, rows, col, cols);
  } else {
    apply_blocks(tile, ld, row, rows, col, cols, nullptr);
  }
}

void Epilogue::apply_integers(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
                              std::int64_t cols) const {
  alignas(64) float numbers[kMaxIntegers * StepProgram::kBlock];
  apply_blocks(tile, ld, row, rows, col, cols, numbers);
}

void Epilogue::apply_blocks(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
                            std::int64_t cols, float* numbers) const {
  const std::int64_t block_cols = std::min(cols, splats_ ? kSplat : StepProgram::kBlock);
  const std::int64_t block_rows = std::max<std::int64_t>(1, StepProgram::kBlock / block_cols);
  for (std::int64_t r = 0; r < rows; r += block_rows) {
    for (std::int64_t c = 0; c < cols; c += block_cols) {
      apply_block(tile + r * ld + c, ld, row + r, std::min(block_rows, rows - r), col + c,
                  std::min(block_cols, cols - c), numbers);
    }
  }
}

}  // namespace wb::engine::WB_ISA
