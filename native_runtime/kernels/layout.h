// Tensors brought to the memory order that a kernel wants, in scratch memory.
#pragma once

#include "kernels/common/strided_copy.h"
#include "kernels/dense.h"

namespace wb::kernels::WB_ISA {

// The strides of a tensor of these sizes in contiguous order.
struct ContiguousStrides {
  std::int64_t strides[kMaxRank];
  explicit ContiguousStrides(const Tensor& tensor) {
    std::int64_t step = 1;
    for (int d = tensor.rank - 1; d >= 0; --d) {
      strides[d] = step;
      step *= tensor.sizes[d];
    }
  }
};

template <typename T>
void copy_layout(const Tensor& sizes, const std::int64_t* from_strides, const T* from, const std::int64_t* to_strides,
                 T* to) {
  Region region;
  for (int d = 0; d < sizes.rank; ++d) region.add(sizes.sizes[d], from_strides[d], to_strides[d]);
  CopyPlan plan;
  plan_copy(region, sizeof(T), &plan);
  run_copy(plan, from, to);
}

// Bytes of scratch for a tensor as a contiguous array of the lane.
[[nodiscard]] inline std::size_t contiguous_bytes(const Tensor& tensor, Lane lane) {
  const std::size_t copy = round_scratch(static_cast<std::size_t>(tensor.numel()) * lane_size(lane));
  return staged_bytes(tensor, lane) + (tensor.is_contiguous() ? 0 : copy);
}

template <typename T>
[[nodiscard]] const T* contiguous_input(const Tensor& tensor, Lane lane, Scratch& scratch) {
  const T* staged = staged_input<T>(tensor, lane, scratch);
  if (tensor.is_contiguous()) return staged;
  T* copy = scratch.take<T>(static_cast<std::size_t>(tensor.numel()));
  copy_layout(tensor, tensor.strides, staged, ContiguousStrides(tensor).strides, copy);
  return copy;
}

template <typename T>
class ContiguousOutput {
 public:
  ContiguousOutput(Tensor& tensor, Lane lane, Scratch& scratch) : tensor_(tensor), staged_(tensor, lane, scratch) {
    data_ = tensor.is_contiguous() ? staged_.data() : scratch.take<T>(static_cast<std::size_t>(tensor.numel()));
  }
  [[nodiscard]] T* data() const { return data_; }
  void store() const {
    if (data_ != staged_.data()) {
      copy_layout(tensor_, ContiguousStrides(tensor_).strides, data_, tensor_.strides, staged_.data());
    }
    staged_.store();
  }

 private:
  Tensor& tensor_;
  StagedOutput<T> staged_;
  T* data_;
};

// An input brought to the memory order of an output of the same sizes. In a plan, the output's sizes need not be set:
// room for the copy is always counted.
[[nodiscard]] inline std::size_t like_bytes(const Tensor& tensor, Lane lane) {
  return staged_bytes(tensor, lane) + round_scratch(static_cast<std::size_t>(tensor.numel()) * lane_size(lane));
}

template <typename T>
[[nodiscard]] const T* input_like(const Tensor& tensor, const Tensor& out, Lane lane, Scratch& scratch) {
  const T* staged = staged_input<T>(tensor, lane, scratch);
  if (same_layout(tensor, out)) return staged;
  T* copy = scratch.take<T>(static_cast<std::size_t>(tensor.numel()));
  copy_layout(tensor, tensor.strides, staged, out.strides, copy);
  return copy;
}

// Bytes to convert an output of these sizes to its dtype at the end.
[[nodiscard]] inline std::size_t output_bytes(const Tensor& out, const Shape& shape, Lane lane) {
  if (is_identity(out.dtype, lane)) return 0;
  return round_scratch(static_cast<std::size_t>(shape.numel()) * lane_size(lane));
}
// The same, and to bring it to its memory order.
[[nodiscard]] inline std::size_t contiguous_output_bytes(const Tensor& out, const Shape& shape, Lane lane) {
  bool ordered = true;
  for (int d = 0; d < out.rank; ++d) ordered = ordered && out.dim_order[d] == d;
  const std::size_t copy = round_scratch(static_cast<std::size_t>(shape.numel()) * lane_size(lane));
  return output_bytes(out, shape, lane) + (ordered ? 0 : copy);
}

// A tensor in memory order around one dimension: outer x size x inner elements.
struct AxisView {
  std::int64_t outer = 1, size = 1, inner = 1;
  AxisView(const Tensor& tensor, int dim) {
    if (tensor.rank == 0) return;
    size = tensor.sizes[dim];
    int place = 0;
    while (tensor.dim_order[place] != dim) outer *= tensor.sizes[tensor.dim_order[place++]];
    while (++place < tensor.rank) inner *= tensor.sizes[tensor.dim_order[place]];
  }
};

}  // namespace wb::kernels::WB_ISA
