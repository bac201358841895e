// A slab: the input rows that a block of output rows reads, with the padding written out, in an order in which the
// inputs of neighbouring outputs are neighbours for every tap of the kernel.
//
// A row of the slab holds `phases` runs of `run` elements: run p has the columns p - pw, p - pw + sw, p - pw + 2 sw,
// ... So tap kx of outputs ox, ox + 1, ... reads run (kx dw) mod sw from element (kx dw) / sw + ox on, whatever the
// stride.
#pragma once

#include "kernels/convolution/geometry.h"

namespace wb::kernels::WB_ISA {

struct Slab {
  std::int64_t phases = 1, run = 0;
  std::int64_t row = 0;       // elements of a row: phases run
  std::int64_t row_step = 1;  // slab rows from one output row to the next
  std::int64_t rows = 0;      // rows for a whole block
  std::int64_t plane = 0;     // elements of a channel
  std::int64_t block = 0;     // output rows of a block

  [[nodiscard]] std::int64_t tap(const ConvGeometry& g, std::int64_t ky, std::int64_t kx) const {
    const std::int64_t x = kx * g.dw;
    return ky * g.dh * row + (x % g.sw) * run + x / g.sw;
  }
  [[nodiscard]] std::int64_t rows_of(const ConvGeometry& g, std::int64_t out_rows) const {
    return (out_rows - 1) * row_step + (g.kh - 1) * g.dh + 1;
  }
};

// Elements that may be read past the end of a slab.
inline constexpr std::int64_t kSlabSlack = 64;

// Plans slabs of `channels` of at most about `limit` elements. False if not even one row could be addressed.
[[nodiscard]] bool plan_slab(const ConvGeometry& g, std::int64_t channels, std::int64_t limit, Slab* slab);

// Fills the slab for output rows [oy, oy + out_rows) from `input` (channel 0 of the group, of one image).
template <typename T>
void fill_slab(const ConvGeometry& g, const Slab& slab, std::int64_t channels, std::int64_t oy, std::int64_t out_rows,
               const T* input, T* to);

}  // namespace wb::kernels::WB_ISA
