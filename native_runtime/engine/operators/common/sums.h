// Sums of integers that stand for numbers, and what becomes of them: averages and the like.
#pragma once

#include <algorithm>

#include "engine/operator.h"
#include "engine/operators/common/quantize.h"

namespace wb::engine::WB_ISA {

template <typename Q>
inline void add_bytes(std::int32_t* __restrict sums, const Q* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += x[i];
}

// (sum - count zero point) scale / divisor, as numbers or as integers, whatever `out` holds.
class SumsTo {
 public:
  SumsTo(const Quantization& from, const TensorView& out) : from_(from), out_(out) {}

  // n results from element `at` on.
  void store(const std::int32_t* sums, std::int64_t n, std::int64_t count, float divisor, std::int64_t at) const {
    // count 255 is below 2^31 (kMostTaps).
    const auto zero = static_cast<std::int32_t>(count * from_.zero_point);
    const float scale = from_.scale / divisor;
    constexpr std::int64_t kPiece = 256;
    float numbers[kPiece];
    for (std::int64_t i = 0; i < n; i += kPiece) {
      const std::int64_t m = std::min(kPiece, n - i);
      float* to = out_.quantization == nullptr ? out_.as<float>() + at + i : numbers;
      for (std::int64_t k = 0; k < m; ++k) to[k] = static_cast<float>(sums[i + k] - zero) * scale;
      if (out_.quantization == nullptr) continue;
      const Quantization& q = *out_.quantization;
      if (out_.dtype == ScalarType::Char) {
        quantize_row(numbers, m, q.scale, q.zero_point, out_.as<std::int8_t>() + at + i);
      } else {
        quantize_row(numbers, m, q.scale, q.zero_point, out_.as<std::uint8_t>() + at + i);
      }
    }
  }

 private:
  Quantization from_;
  TensorView out_;
};

}  // namespace wb::engine::WB_ISA
