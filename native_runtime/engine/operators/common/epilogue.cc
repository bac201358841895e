#include "engine/operators/common/epilogue.h"

#include <algorithm>

namespace wb::engine::WB_ISA {
namespace {
// A one-element operand is spread over a row of so many.
constexpr std::int64_t kSplat = 128;
// Steps of an epilogue, so that its temporaries fit onto the stack.
constexpr std::size_t kMaxEpilogue = 8;
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
  if (kinds_[k] != Kind::Full) return false;
  *data = data_[k];
  program_.drop_first();
  return true;
}

void Epilogue::apply_block(float* tile, std::int64_t ld, std::int64_t row, std::int64_t rows, std::int64_t col,
                           std::int64_t cols) const {
  alignas(64) float memory[kMaxEpilogue * StepProgram::kBlock];
  alignas(64) float splats[StepProgram::kMaxInputs * kSplat];
  Place places[StepProgram::kMaxInputs];
  for (int k = 0; k < input_count_; ++k) {
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
  const std::int64_t block_cols = std::min(cols, splats_ ? kSplat : StepProgram::kBlock);
  const std::int64_t block_rows = std::max<std::int64_t>(1, StepProgram::kBlock / block_cols);
  for (std::int64_t r = 0; r < rows; r += block_rows) {
    for (std::int64_t c = 0; c < cols; c += block_cols) {
      apply_block(tile + r * ld + c, ld, row + r, std::min(block_rows, rows - r), col + c,
                  std::min(block_cols, cols - c));
    }
  }
}

}  // namespace wb::engine::WB_ISA
