// Nodes that move elements and compute nothing: transpose, reshape, slice, pad, copy, convert.
#include <cmath>

#include "backends/xnnpack/nodes/kinds.h"

namespace wb::xnnpack {
namespace {

using engine::Op;

Error expect_count(const Builder& builder, const char* name, std::uint32_t found, int rank) {
  if (found == static_cast<std::uint32_t>(rank)) return Error::Ok;
  return builder.fail(Error::InvalidProgram, "%s: expected %d numbers, found %u", name, rank, found);
}

Error build_transpose(Builder& builder, const fb::Transpose& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  const Extent x = builder.extent(input);
  WB_TRY(expect_count(builder, "perm", count(node.perm()), x.rank()));
  engine::Attributes attributes;
  Extent y;
  std::uint32_t seen = 0;
  for (int d = 0; d < x.rank(); ++d) {
    const std::uint32_t from = node.perm()->Get(static_cast<std::uint32_t>(d));
    if (from >= static_cast<std::uint32_t>(x.rank()) || (seen >> from & 1U) != 0) {
      return builder.fail(Error::InvalidProgram, "perm: %u at place %d is out of range or there twice", from, d);
    }
    seen |= 1U << from;
    attributes.permutation[d] = static_cast<std::uint8_t>(from);
    y.append(x.size(static_cast<int>(from)), x.is_dynamic(static_cast<int>(from)));
  }
  attributes.rank = x.shape.rank;
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), y, builder.value(input).dtype));
  builder.emit(Op::Transpose, {input}, output, attributes);
  return Error::Ok;
}

// One size may be 0: what is left over.
Error build_reshape(Builder& builder, const fb::Reshape& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  const Extent x = builder.extent(input);
  const std::uint32_t rank = count(node.new_shape());
  if (rank > static_cast<std::uint32_t>(engine::kMaxRank)) {
    return builder.fail(Error::InvalidProgram, "new_shape: expected at most %d sizes, found %u", engine::kMaxRank,
                        rank);
  }
  engine::Attributes attributes;
  attributes.rank = static_cast<std::uint8_t>(rank);
  Extent y;
  std::int64_t known = 1;
  int inferred = -1;
  for (std::uint32_t d = 0; d < rank; ++d) {
    const std::int64_t size = node.new_shape()->Get(d);
    if (size == 0 && inferred >= 0) {
      return builder.fail(Error::InvalidProgram, "new_shape: dimensions %d and %u are to be inferred", inferred, d);
    }
    if (size == 0) inferred = static_cast<int>(d);
    if (size != 0 && known > engine::kMaxElements / size) {
      return builder.fail(Error::InvalidProgram, "new_shape: size %lld of dimension %u is too large",
                          static_cast<long long>(size), d);
    }
    known *= size == 0 ? 1 : size;
    attributes.sizes[d].value = size == 0 ? engine::SizeRule::kInfer : size;
    y.append(size, false);
  }
  const std::int64_t numel = x.shape.numel();
  if (inferred >= 0 ? numel % known != 0 : numel != known) {
    return builder.fail(Error::InvalidProgram, "sizes %s can't become new_shape %s", text_of(x).c_str(),
                        text_of(y).c_str());
  }
  if (inferred >= 0) y.set(inferred, numel / known, x.dynamic != 0);
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), y, builder.value(input).dtype));
  builder.emit(Op::Reshape, {input}, output, attributes);
  return Error::Ok;
}

// The part [offset, offset + size) of each dimension; a size of 0 means all that is left.
Error build_slice(Builder& builder, const fb::Slice& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  const Extent x = builder.extent(input);
  WB_TRY(expect_count(builder, "offsets", count(node.offsets()), x.rank()));
  WB_TRY(expect_count(builder, "sizes", count(node.sizes()), x.rank()));
  Extent y = x;
  std::vector<int> cut;
  for (int d = 0; d < x.rank(); ++d) {
    const std::int64_t offset = node.offsets()->Get(static_cast<std::uint32_t>(d));
    const std::int64_t size = node.sizes()->Get(static_cast<std::uint32_t>(d));
    if (offset > x.size(d) || size > x.size(d) - offset) {
      return builder.fail(Error::InvalidProgram, "%lld elements from %lld on of dimension %d of sizes %s",
                          static_cast<long long>(size), static_cast<long long>(offset), d, text_of(x).c_str());
    }
    if (offset == 0 && (size == 0 || size == x.size(d))) continue;  // all of it
    cut.push_back(d);
    y.set(d, size == 0 ? x.size(d) - offset : size, size == 0 && x.is_dynamic(d));
  }
  const ScalarType dtype = builder.value(input).dtype;
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), y, dtype));
  if (cut.empty()) builder.emit(Op::Copy, {input}, output);
  ValueId from = input;
  Extent sizes = x;
  for (std::size_t i = 0; i < cut.size(); ++i) {
    const int d = cut[i];
    engine::Attributes attributes;
    attributes.axis = d;
    attributes.begin = node.offsets()->Get(static_cast<std::uint32_t>(d));
    // A size that may be smaller: to the end, wherever that is.
    attributes.end = y.is_dynamic(d) ? engine::kMaxElements : attributes.begin + y.size(d);
    sizes.set(d, y.size(d), y.is_dynamic(d));
    const bool last = i + 1 == cut.size();
    const ValueId to = last ? output : builder.temporary_like(sizes, input);
    builder.emit(Op::Slice, {from}, to, attributes, last);
    from = to;
  }
  return Error::Ok;
}

Error build_pad(Builder& builder, const fb::ConstantPad& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  Extent extent = builder.extent(input);
  WB_TRY(expect_count(builder, "pre_paddings", count(node.pre_paddings()), extent.rank()));
  WB_TRY(expect_count(builder, "post_paddings", count(node.post_paddings()), extent.rank()));
  engine::Attributes attributes;
  attributes.fill = static_cast<double>(node.padding_value());
  for (int d = 0; d < extent.rank(); ++d) {
    const std::uint32_t before = node.pre_paddings()->Get(static_cast<std::uint32_t>(d));
    const std::uint32_t after = node.post_paddings()->Get(static_cast<std::uint32_t>(d));
    WB_TRY(builder.in_range("pre_paddings", before, 0, kMaxPixels));
    WB_TRY(builder.in_range("post_paddings", after, 0, kMaxPixels));
    attributes.before[d] = before;
    attributes.after[d] = after;
    extent.set(d, extent.size(d) + before + after, extent.is_dynamic(d));
  }
  attributes.rank = extent.shape.rank;
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), extent, builder.value(input).dtype));
  builder.emit(Op::Pad, {input}, output, attributes);
  return Error::Ok;
}

Error build_copy(Builder& builder, const fb::Unary& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  WB_ASSIGN(const ValueId output,
            builder.output("output_id", node.output_id(), builder.extent(input), builder.value(input).dtype));
  builder.emit(Op::Copy, {input}, output);
  return Error::Ok;
}

// The numbers that are left when the last `dims` dimensions get one scale together.
void round_together(Builder& builder, ValueId input, ValueId output, int dims) {
  const Extent x = builder.extent(input);
  Extent rows;
  std::int64_t count = 1;
  bool dynamic = false;
  for (int d = 0; d < x.rank() - dims; ++d) {
    count *= x.size(d);
    dynamic = dynamic || x.is_dynamic(d);
  }
  std::int64_t columns = 1;
  bool wide = false;
  for (int d = x.rank() - dims; d < x.rank(); ++d) {
    columns *= x.size(d);
    wide = wide || x.is_dynamic(d);
  }
  rows.append(count, dynamic);
  rows.append(columns, wide);
  engine::Attributes flat;
  flat.rank = 2;
  // What is fixed, or a single leading dimension, is said; the other follows.
  const bool one = x.rank() - dims == 1;
  if (dynamic && one) {
    flat.sizes[0].from_input = 0;
  } else {
    flat.sizes[0].value = dynamic ? engine::SizeRule::kInfer : count;
  }
  flat.sizes[1].value = wide ? engine::SizeRule::kInfer : columns;
  engine::Attributes back;
  back.rank = x.shape.rank;
  for (int d = 0; d < x.rank(); ++d) back.sizes[d].value = x.is_dynamic(d) ? engine::SizeRule::kInfer : x.size(d);
  const ValueId matrix = builder.temporary(rows, ScalarType::Float);
  const ValueId integers = builder.temporary(rows, ScalarType::Char);
  builder.graph.values[integers].quantization.kind = engine::Quantization::Kind::PerRow;
  const ValueId numbers = builder.temporary(rows, ScalarType::Float);
  builder.emit(Op::Reshape, {input}, matrix, flat, false);
  builder.emit(Op::Quantize, {matrix}, integers, {}, false);
  builder.emit(Op::Dequantize, {integers}, numbers, {}, false);
  builder.emit(Op::Reshape, {numbers}, output, back);
}

Error build_convert(Builder& builder, const fb::Unary& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  const ScalarType from = builder.value(input).dtype;
  const ScalarType to = builder.declared_dtype(node.output_id(), from);
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), builder.extent(input), to));
  if (builder.value(output).quantization.present()) {
    builder.emit(Op::Quantize, {input}, output);
  } else if (builder.value(input).quantization.present()) {
    builder.emit(Op::Dequantize, {input}, output);
  } else if (const int dims = builder.rounded_dims(output); dims != 0) {
    round_together(builder, input, output, dims);
  } else {
    builder.emit(from == to ? Op::Copy : Op::Convert, {input}, output);
  }
  return Error::Ok;
}

constexpr NodeKind kKinds[] = {
    row<fb::Transpose, build_transpose>(fb::Operator::StaticTranspose),
    row<fb::Reshape, build_reshape>(fb::Operator::StaticReshape),
    row<fb::Slice, build_slice>(fb::Operator::StaticSlice),
    row<fb::ConstantPad, build_pad>(fb::Operator::StaticConstantPad),
    row<fb::Unary, build_copy>(fb::Operator::Copy),
    row<fb::Unary, build_convert>(fb::Operator::Convert),
};

}  // namespace

constinit const std::span<const NodeKind> move_kinds = kKinds;

}  // namespace wb::xnnpack
