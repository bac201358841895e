// Fully connected layers and products of batches of matrices.
#include "backends/xnnpack/nodes/kinds.h"

namespace wb::xnnpack {
namespace {

using engine::kNoValue;
using engine::Op;

constexpr std::uint32_t kTranspose = 1;  // the filter is (in, out); the second matrix of a product is (n, k)

// [..., k] x [n, k] -> [..., n]
Error build_fully_connected(Builder& builder, const fb::FullyConnected& node) {
  WB_TRY(builder.allow_flags(node.flags(), kTranspose));
  WB_ASSIGN(const ValueId input, builder.input("input1_id", node.input1_id()));
  WB_ASSIGN(const ValueId filter, builder.input("filter_id", node.filter_id()));
  WB_ASSIGN(ValueId bias, builder.optional_input("bias_id", node.bias_id()));
  WB_TRY(builder.expect_rank("filter_id", filter, 2));
  const Extent x = builder.extent(input);
  const Extent w = builder.extent(filter);
  const bool transposed = (node.flags() & kTranspose) != 0;
  const int in = transposed ? 0 : 1;
  if (x.rank() == 0 || x.size(x.rank() - 1) != w.size(in)) {
    return builder.fail(Error::InvalidProgram, "an input of sizes %s and a filter of sizes %s don't fit",
                        text_of(x).c_str(), text_of(w).c_str());
  }
  const std::int64_t channels = w.size(1 - in);
  if (bias != kNoValue) {
    if (builder.value(bias).shape.numel() != channels) {
      return builder.fail(Error::InvalidProgram, "bias_id: expected %lld elements, found sizes %s",
                          static_cast<long long>(channels), text_of(builder.extent(bias)).c_str());
    }
    bias = builder.reshaped(bias, {channels});
  }
  const ScalarType dtype = builder.value(input).dtype;
  Extent y = x;
  y.set(y.rank() - 1, channels, w.is_dynamic(1 - in));
  engine::Attributes attributes;
  attributes.transpose_b = !transposed;
  if (x.rank() > 1) {
    WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), y, dtype));
    builder.emit(Op::MatMul, {input, filter, bias}, output, attributes);
    return Error::Ok;
  }
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), y, dtype));
  const ValueId matrix = builder.reshaped(input, {1, x.size(0)});
  Extent product;
  product.append(1, false);
  product.append(channels, false);
  const ValueId result = builder.temporary_like(product, output);
  builder.emit(Op::MatMul, {matrix, filter, bias}, result, attributes, false);
  engine::Attributes shape;
  shape.rank = 1;
  shape.sizes[0].value = channels;
  builder.emit(Op::Reshape, {result}, output, shape);
  return Error::Ok;
}

// [..., m, k] x [..., k, n] -> [..., m, n]
Error build_batch_matmul(Builder& builder, const fb::Binary& node) {
  WB_TRY(builder.allow_flags(node.flags(), kTranspose));
  WB_ASSIGN(const ValueId left, builder.input("input1_id", node.input1_id()));
  WB_ASSIGN(const ValueId right, builder.input("input2_id", node.input2_id()));
  WB_TRY(builder.same_dtype({left, right}));
  const Extent a = builder.extent(left);
  const Extent b = builder.extent(right);
  const bool transposed = (node.flags() & kTranspose) != 0;
  const int rank = a.rank();
  bool fits = rank >= 2 && b.rank() == rank && a.size(rank - 1) == b.size(transposed ? rank - 1 : rank - 2);
  for (int d = 0; fits && d < rank - 2; ++d) fits = a.size(d) == b.size(d) || a.size(d) == 1 || b.size(d) == 1;
  if (!fits) {
    return builder.fail(Error::InvalidProgram, "matrices of sizes %s and %s%s don't fit", text_of(a).c_str(),
                        text_of(b).c_str(), transposed ? " (transposed)" : "");
  }
  Extent y;
  for (int d = 0; d < rank - 2; ++d) {
    const bool from_a = a.size(d) != 1;
    const bool both = from_a && b.size(d) != 1;
    const bool dynamic = both ? a.is_dynamic(d) && b.is_dynamic(d) : from_a ? a.is_dynamic(d) : b.is_dynamic(d);
    y.append(from_a ? a.size(d) : b.size(d), dynamic);
  }
  y.append(a.size(rank - 2), a.is_dynamic(rank - 2));
  const int columns = transposed ? rank - 2 : rank - 1;
  y.append(b.size(columns), b.is_dynamic(columns));
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), y, builder.value(left).dtype));
  engine::Attributes attributes;
  attributes.transpose_b = transposed;
  builder.emit(Op::MatMul, {left, right, kNoValue}, output, attributes);
  return Error::Ok;
}

constexpr NodeKind kKinds[] = {
    row<fb::FullyConnected, build_fully_connected>(fb::Operator::FullyConnected, true),
    row<fb::Binary, build_batch_matmul>(fb::Operator::BatchMatrixMultiply),
};

}  // namespace

constinit const std::span<const NodeKind> matmul_kinds = kKinds;

}  // namespace wb::xnnpack
