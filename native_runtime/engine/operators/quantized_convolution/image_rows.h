// A convolution as a product of integers: row i of its left-hand side holds the inputs of output pixel i, tap after
// tap; padding is what stands for zero.
#pragma once

#include "engine/operators/convolution/geometry.h"
#include "engine/operators/quantized_matmul/left.h"
#include "engine/operators/quantized_matmul/product.h"

namespace wb::engine::WB_ISA::quantized {

class ImageRows {
 public:
  // Channels from the first one of `group` on.
  ImageRows(const dense::Geometry& geometry, const std::uint8_t* image, std::int64_t group, const LeftForm& form)
      : g_(geometry),
        image_(image + group * geometry.cin_group()),
        form_(form),
        joined_(geometry.groups == 1 && geometry.dw == 1) {}

  [[nodiscard]] LeftRows source() const {
    return {this, [](const void* self, std::int64_t i, int rows, DotLeft* to, std::int64_t ld) {
              static_cast<const ImageRows*>(self)->fill(i, rows, to, ld);
            }};
  }

 private:
  void fill(std::int64_t i, int rows, DotLeft* to, std::int64_t ld) const;
  // Where no tap of `rows` (or none) pixels of a row is padding.
  bool fill_inside(const std::uint8_t* image, std::int64_t iy, std::int64_t ix, int rows, DotLeft* to,
                   std::int64_t ld) const;
  void fill_kernel_rows(const std::uint8_t* image, std::int64_t iy, std::int64_t ix, DotLeft* to) const;
  void fill_taps(const std::uint8_t* image, std::int64_t iy, std::int64_t ix, DotLeft* to) const;

  const dense::Geometry& g_;
  const std::uint8_t* image_;
  LeftForm form_;
  // All taps of a row of the kernel stand next to each other in the image.
  bool joined_;
};

}  // namespace wb::engine::WB_ISA::quantized
