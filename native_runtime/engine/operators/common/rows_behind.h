// Where the parameters of a value quantized by rows stand: behind its integers.
#pragma once

#include "engine/operator.h"

namespace wb::engine::WB_ISA {

[[nodiscard]] inline RowQuantization* rows_behind(const TensorView& view) {
  const std::int64_t bytes = (view.shape.numel() + 63) / 64 * 64;
  return reinterpret_cast<RowQuantization*>(view.as<std::byte>() + bytes);
}

}  // namespace wb::engine::WB_ISA
