// What is done to the elements of a result before they are stored: bias and the epilogue of the node. Its beginning
// (the residual, a clamp) is done in registers, the rest on tiles that have just been stored.
#pragma once

#include <cstdint>

#include "engine/operators/common/epilogue.h"
#include "engine/operators/matmul/tile.h"

namespace wb::engine::WB_ISA::dense {

struct Finish {
  const float* bias = nullptr;      // of the columns
  const float* residual = nullptr;  // stands like the result
  bool clamp = false;
  float low = 0, high = 0;
  const Epilogue* rest = nullptr;  // null when nothing is left
};

// The finish of the node; `epilogue` is that of the same context and must live as long.
inline Finish make_finish(Epilogue& epilogue, const float* bias) {
  Finish finish;
  finish.bias = bias;
  if (!epilogue.take_residual(&finish.residual)) finish.residual = nullptr;
  finish.clamp = epilogue.take_clamp(&finish.low, &finish.high);
  finish.rest = epilogue.empty() ? nullptr : &epilogue;
  return finish;
}

// For what is computed without registers' part: residual and clamp if `late`, then the rest, on rows [row, row + rows)
// of the result, which stand at `to`.
void finish_rows(const Finish& finish, bool late, std::int64_t row, std::int64_t rows, std::int64_t columns, float* to);

}  // namespace wb::engine::WB_ISA::dense
