// Transpose, Expand, Slice: strided copies.
#include <algorithm>
#include <iterator>

#include "engine/operators/move/strided.h"

namespace wb::engine::WB_ISA {
namespace {

struct Strides {
  std::int64_t of[kMaxRank] = {};

  explicit Strides(const Shape& shape) {
    std::int64_t stride = 1;
    for (int d = shape.rank - 1; d >= 0; --d) {
      of[d] = stride;
      stride *= shape.sizes[d];
    }
  }
};

StridedCopy& begin(ShapeContext& context) {
  auto& copy = *static_cast<StridedCopy*>(context.state);
  copy = StridedCopy{};
  copy.element = element_size(context.operands.outputs[0].dtype);
  return copy;
}

Error transpose_shape(ShapeContext& context) {
  StridedCopy& copy = begin(context);
  const Shape& in = context.operands.inputs[0].shape;
  const Strides strides(in);
  for (int d = 0; d < in.rank; ++d) {
    const int from = context.node.attributes.permutation[d];
    copy.push(in.sizes[from], strides.of[from]);
  }
  return Error::Ok;
}

Error expand_shape(ShapeContext& context) {
  StridedCopy& copy = begin(context);
  const Shape& in = context.operands.inputs[0].shape;
  const Shape& out = context.operands.outputs[0].shape;
  const Strides strides(in);
  for (int d = 0; d < out.rank; ++d) {
    const int from = d - (out.rank - in.rank);
    const bool repeats = from < 0 || in.sizes[from] == 1;
    copy.push(out.sizes[d], repeats ? 0 : strides.of[from]);
  }
  return Error::Ok;
}

Error slice_shape(ShapeContext& context) {
  StridedCopy& copy = begin(context);
  const Attributes& a = context.node.attributes;
  const Shape& in = context.operands.inputs[0].shape;
  const Shape& out = context.operands.outputs[0].shape;
  const Strides strides(in);
  const std::int64_t size = in.sizes[a.axis];
  const std::int64_t first = std::clamp<std::int64_t>(a.begin < 0 ? a.begin + size : a.begin, 0, size);
  copy.begin = first * strides.of[a.axis];
  for (int d = 0; d < out.rank; ++d) copy.push(out.sizes[d], d == a.axis ? strides.of[d] * a.step : strides.of[d]);
  return Error::Ok;
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(move_strided_rows, {Op::Transpose, prepare_copy, transpose_shape, run_copy},
                    {Op::Expand, prepare_copy, expand_shape, run_copy},
                    {Op::Slice, prepare_copy, slice_shape, run_copy})
