// Masks of an attention: rows of numbers that are added to the scores.
#pragma once

#include "engine/operators/attention/geometry.h"
#include "engine/operators/attention/rows.h"

namespace wb::engine::WB_ISA::attention {

// The mask of one head over one block of keys. `buffer` has room for a block.
class MaskBlock {
 public:
  MaskBlock(const MaskView& view, const void* data, std::int64_t head_offset, std::int64_t first_key, std::int64_t keys,
            float* buffer)
      : view_(view), data_(data), offset_(head_offset + first_key * view.column_stride), keys_(keys), buffer_(buffer) {}

  // Adds query i's mask to its scores, which are in powers of two.
  void add(std::int64_t i, float* scores) {
    const float* mask = row(i);
    std::int64_t j = 0;
    for (; j + kWidth <= keys_; j += kWidth)
      simd::store(scores + j, masked(simd::load(scores + j), simd::load(mask + j)));
    if (j < keys_) {
      const int left = static_cast<int>(keys_ - j);
      simd::store_first(scores + j, masked(simd::load(scores + j), simd::load_first(mask + j, left)), left);
    }
  }

 private:
  // Below -1e37 a score no longer counts; such a mask must not become -inf by the factor.
  [[gnu::always_inline]] static Floats masked(Floats scores, Floats mask) {
    return mask < simd::splat(-1e37F) ? mask : simd::fma(mask, simd::splat(1.44269504F), scores);
  }

  const float* row(std::int64_t i) {
    const std::int64_t begin = offset_ + i * view_.row_stride;
    if (!view_.is_bool && view_.column_stride == 1) return static_cast<const float*>(data_) + begin;
    if (filled_ && view_.row_stride == 0) return buffer_;
    filled_ = true;
    const std::int64_t step = view_.column_stride;
    if (view_.is_bool) {
      const std::uint8_t* from = static_cast<const std::uint8_t*>(data_) + begin;
      for (std::int64_t j = 0; j < keys_; ++j) buffer_[j] = from[j * step] != 0 ? 0.0F : -kInfinity;
    } else {
      const float* from = static_cast<const float*>(data_) + begin;
      for (std::int64_t j = 0; j < keys_; ++j) buffer_[j] = from[j * step];
    }
    return buffer_;
  }

  const MaskView& view_;
  const void* data_;
  std::int64_t offset_, keys_;
  float* buffer_;
  bool filled_ = false;
};

}  // namespace wb::engine::WB_ISA::attention
