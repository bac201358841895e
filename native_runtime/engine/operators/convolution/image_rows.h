// A convolution as a product: row i of its left-hand side holds the inputs of output pixel i, tap after tap. Tiles of
// these rows are written when they are needed.
#pragma once

#include "engine/operators/convolution/geometry.h"
#include "engine/operators/matmul/product.h"

namespace wb::engine::WB_ISA::dense {

class ImageRows {
 public:
  // Channels from the first one of `group` on.
  ImageRows(const Geometry& geometry, const float* image, std::int64_t group);

  // Pixels of an output row if rows are to be taken from the image where they stand, as far as they do; else 0.
  [[nodiscard]] std::int64_t period() const;

  [[nodiscard]] RowSource source() const {
    RowSource rows;
    if (period() != 0) {
      rows.place = [](const void* self, std::int64_t i, int count, Tile* tile) {
        return static_cast<const ImageRows*>(self)->place(i, count, tile);
      };
    }
    rows.self = this;
    rows.fill = [](const void* self, std::int64_t i, int count, std::int64_t k0, std::int64_t kc, float* to,
                   std::int64_t ld) { static_cast<const ImageRows*>(self)->fill(i, count, k0, kc, to, ld); };
    return rows;
  }

 private:
  void fill(std::int64_t i, int rows, std::int64_t k0, std::int64_t kc, float* to, std::int64_t ld) const;
  bool place(std::int64_t i, int rows, Tile* tile) const;
  void fill_kernel_rows(const float* image, std::int64_t iy, std::int64_t ix, std::int64_t k0, std::int64_t kc,
                        float* to) const;
  void fill_taps(const float* image, std::int64_t iy, std::int64_t ix, std::int64_t k0, std::int64_t kc,
                 float* to) const;

  const Geometry& g_;
  const float* image_;
  // All taps of a row of the kernel stand next to each other in the image.
  bool joined_;
};

}  // namespace wb::engine::WB_ISA::dense
