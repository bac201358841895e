// Copies between strided regions, by element size. Every operator that only moves elements is one or several of these.
#pragma once

#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {

inline constexpr int kMaxRegion = 2 * kMaxRank;

// A region of `sizes`, read and written through strides (in elements; 0 and negative are allowed for the source).
struct Region {
  int rank = 0;
  std::int64_t sizes[kMaxRegion];
  std::int64_t from[kMaxRegion];
  std::int64_t to[kMaxRegion];

  void add(std::int64_t size, std::int64_t from_stride, std::int64_t to_stride) {
    sizes[rank] = size;
    from[rank] = from_stride;
    to[rank++] = to_stride;
  }
};

// How to copy a region: dimensions ordered by the destination's strides, merged, and a method for the inner loops.
struct CopyPlan {
  enum class Method : std::uint8_t { Empty, Runs, Transpose, Elements, Fill, Convert };

  Method method = Method::Empty;
  std::uint8_t element = 0;  // bytes; of the destination for Convert
  std::uint8_t from_element = 0;
  int rank = 0;
  int tile = 0;  // Transpose: the dimension along which the source is dense
  std::int64_t sizes[kMaxRegion];
  std::int64_t from[kMaxRegion];  // bytes
  std::int64_t to[kMaxRegion];    // bytes
  Lane lane = Lane::F32;          // Convert
  LoadFunction load = nullptr;
  StoreFunction store = nullptr;
};

// Elements of `element` bytes (1, 2, 4, 8 or 16).
void plan_copy(const Region& region, std::size_t element, CopyPlan* plan);
// With a conversion; the types are equal (of any kind) or computable, which `can_convert` tells.
[[nodiscard]] bool can_convert(ScalarType from, ScalarType to);
void plan_convert(const Region& region, ScalarType from, ScalarType to, CopyPlan* plan);

void run_copy(const CopyPlan& plan, const void* from, void* to);

// The region that pairs two tensors of the same sizes.
[[nodiscard]] Region pair_tensors(const Tensor& from, const Tensor& to);

}  // namespace wb::kernels::WB_ISA
