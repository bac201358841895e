#include "engine/infer/infer.h"

#include "engine/names.h"

namespace wb::engine {
namespace {

Error infer_of(const InferContext& context) {
  switch (context.node.op) {
    case Op::Pointwise: return infer_pointwise(context);
    case Op::MatMul: return infer_matmul(context);
    case Op::Convolution: return infer_convolution(context);
    case Op::TransposedConvolution: return infer_transposed_convolution(context);
    case Op::MaxPool:
    case Op::AvgPool: return infer_pool(context);
    case Op::Reduce:
    case Op::ArgReduce: return infer_reduce(context);
    case Op::Softmax:
    case Op::Convert:
    case Op::Quantize:
    case Op::Dequantize:
    case Op::Copy: return infer_same(context);
    case Op::LayerNorm:
    case Op::RmsNorm: return infer_norm(context);
    case Op::GroupNorm: return infer_group_norm(context);
    case Op::Attention: return infer_attention(context);
    case Op::Embedding: return infer_embedding(context);
    case Op::Gather: return infer_gather(context);
    case Op::Lstm:
    case Op::Gru: return infer_recurrent(context);
    case Op::Transpose: return infer_transpose(context);
    case Op::Reshape: return infer_reshape(context);
    case Op::Expand: return infer_expand(context);
    case Op::Concat: return infer_concat(context);
    case Op::Slice: return infer_slice(context);
    case Op::Pad: return infer_pad(context);
    case Op::Upsample: return infer_upsample(context);
  }
  return Error::NotSupported;
}

// An epilogue's operands: the same shape as output 0, a vector along its last dimension, or one element.
Error check_post_inputs(const InferContext& context, std::span<const Shape* const> post_inputs) {
  const Shape& out = context.out();
  for (std::size_t i = 0; i < post_inputs.size(); ++i) {
    const Shape& shape = *post_inputs[i];
    const std::int64_t columns = out.rank == 0 ? 1 : out.sizes[out.rank - 1];
    const std::int64_t numel = shape.numel();
    // All of the result, one row of it, or one element: what has so many elements stands in memory in its order.
    if (broadcasts_to(shape, out) && (numel == 1 || numel == columns || numel == out.numel())) continue;
    return context.report.fail(Error::InvalidProgram,
                               "epilogue operand %zu: expected sizes %s, [%lld] or one element, found %s", i,
                               ShapeText(out).text, static_cast<long long>(columns), ShapeText(shape).text);
  }
  return Error::Ok;
}

}  // namespace

Error infer(const InferContext& context) {
  const std::size_t count = context.node.inputs.size();
  const InferContext own{context.report, context.node, context.inputs.first(count), context.outputs};
  WB_TRY(infer_of(own));
  for (std::size_t i = 0; i < own.outputs.size(); ++i) {
    if (checked_numel(own.outputs[i]) < 0) {
      return own.report.fail(Error::InvalidProgram, "output %zu: sizes %s are out of range", i,
                             ShapeText(own.outputs[i]).text);
    }
  }
  if (context.node.op == Op::Pointwise) return Error::Ok;
  return check_post_inputs(own, context.inputs.subspan(count));
}

bool broadcast(const Shape& a, const Shape& b, Shape* result) {
  Shape shape;
  shape.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int back = 1; back <= shape.rank; ++back) {
    const std::int64_t x = back <= a.rank ? a.sizes[a.rank - back] : 1;
    const std::int64_t y = back <= b.rank ? b.sizes[b.rank - back] : 1;
    if (x != y && x != 1 && y != 1) return false;
    shape.sizes[shape.rank - back] = x == 1 ? y : x;
  }
  *result = shape;
  return true;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank > to.rank) return false;
  for (int back = 1; back <= from.rank; ++back) {
    const std::int64_t size = from.sizes[from.rank - back];
    if (size != 1 && size != to.sizes[to.rank - back]) return false;
  }
  return true;
}

std::int64_t checked_numel(const Shape& shape) {
  std::int64_t count = 1;
  bool empty = false;
  for (int d = 0; d < shape.rank; ++d) {
    const std::int64_t size = shape.sizes[d];
    if (size < 0 || size > kMaxElements) return -1;
    if (size == 0) {
      empty = true;
      continue;
    }
    // Also without the dimensions of size 0: operators multiply parts of the sizes.
    if (count > kMaxElements / size) return -1;
    count *= size;
  }
  return empty ? 0 : count;
}

}  // namespace wb::engine
