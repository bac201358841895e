#include "engine/operators/matmul/finish.h"

namespace wb::engine::WB_ISA::dense {

void finish_rows(const Finish& finish, bool late, std::int64_t row, std::int64_t rows, std::int64_t columns,
                 float* to) {
  const std::int64_t count = rows * columns;
  if (late && finish.residual != nullptr) {
    const float* residual = finish.residual + row * columns;
    std::int64_t i = 0;
    for (; i + kWidth <= count; i += kWidth) simd::store(to + i, simd::load(to + i) + simd::load(residual + i));
    for (; i < count; ++i) to[i] += residual[i];
  }
  if (late && finish.clamp) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = to[i] < finish.low ? finish.low : to[i];
      to[i] = x > finish.high ? finish.high : x;
    }
  }
  if (finish.rest != nullptr) finish.rest->apply(to, columns, row, rows, 0, columns);
}

}  // namespace wb::engine::WB_ISA::dense
