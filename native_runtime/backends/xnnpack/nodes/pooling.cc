// Pools over windows and over whole images.
#include "backends/xnnpack/nodes/kinds.h"
#include "backends/xnnpack/nodes/window.h"

namespace wb::xnnpack {
namespace {

using engine::Op;

constexpr std::uint32_t kKeepDims = 0x40;

struct Axis {
  std::uint32_t before, after, size, stride, dilation;
};

Error check(const Builder& builder, const Axis& axis, const char* const names[5]) {
  WB_TRY(builder.in_range(names[0], axis.size, 1, kMaxPixels));
  WB_TRY(builder.in_range(names[1], axis.stride, 1, kMaxPixels));
  WB_TRY(builder.in_range(names[2], axis.dilation, 1, kMaxPixels));
  // A window that holds nothing but padding has no maximum and no average.
  const std::uint64_t last = std::uint64_t{axis.dilation} * (axis.size - 1);
  const auto most = static_cast<std::uint32_t>(last < kMaxPixels ? last : kMaxPixels);
  WB_TRY(builder.in_range(names[3], axis.before, 0, most));
  return builder.in_range(names[4], axis.after, 0, most);
}

Error build_pool(Builder& builder, const fb::Pooling2D& node, Op op) {
  WB_TRY(builder.allow_flags(node.flags(), kKeepDims));
  const bool dilates = op == Op::MaxPool;
  const Axis y{node.padding_top(), node.padding_bottom(), node.pooling_height(), node.stride_height(),
               dilates ? node.dilation_height() : 1};
  const Axis x{node.padding_left(), node.padding_right(), node.pooling_width(), node.stride_width(),
               dilates ? node.dilation_width() : 1};
  static constexpr const char* kVertical[5] = {"pooling_height", "stride_height", "dilation_height", "padding_top",
                                               "padding_bottom"};
  static constexpr const char* kHorizontal[5] = {"pooling_width", "stride_width", "dilation_width", "padding_left",
                                                 "padding_right"};
  WB_TRY(check(builder, y, kVertical));
  WB_TRY(check(builder, x, kHorizontal));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  WB_TRY(builder.expect_rank("input_id", input, 4));
  const Extent image = builder.extent(input);
  const std::int64_t h = window_count(image.size(1), std::int64_t{y.before} + y.after, y.size, y.stride, y.dilation);
  const std::int64_t w = window_count(image.size(2), std::int64_t{x.before} + x.after, x.size, x.stride, x.dilation);
  if (h <= 0 || w <= 0) {
    return builder.fail(Error::InvalidProgram, "windows of %u x %u don't fit into an image of sizes %s", y.size, x.size,
                        text_of(image).c_str());
  }
  Extent result = image;
  result.set(1, h, image.is_dynamic(1));
  result.set(2, w, image.is_dynamic(2));
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), result, builder.value(input).dtype));
  engine::Attributes attributes;
  attributes.window = {.kernel_h = y.size,
                       .kernel_w = x.size,
                       .stride_h = y.stride,
                       .stride_w = x.stride,
                       .dilation_h = y.dilation,
                       .dilation_w = x.dilation,
                       .pad_top = y.before,
                       .pad_bottom = y.after,
                       .pad_left = x.before,
                       .pad_right = x.after};
  builder.emit(op, {input}, output, attributes);
  return Error::Ok;
}

Error build_max_pool(Builder& builder, const fb::Pooling2D& node) { return build_pool(builder, node, Op::MaxPool); }

// Padding does not count.
Error build_average_pool(Builder& builder, const fb::Pooling2D& node) { return build_pool(builder, node, Op::AvgPool); }

// [n, h, w, c] -> [n, 1, 1, c]; [n, c] without the flag, unless the blob (an older one) says otherwise of the result.
Error build_global_average_pool(Builder& builder, const fb::Unary& node) {
  WB_TRY(builder.allow_flags(node.flags(), kKeepDims));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  const Extent x = builder.extent(input);
  if (x.rank() < 3) {
    return builder.fail(Error::InvalidProgram, "input_id: expected an image, found sizes %s", text_of(x).c_str());
  }
  const int rank = x.rank();
  engine::Attributes attributes;
  attributes.reduce = engine::ReduceFn::Mean;
  attributes.mask = 0b11U << (rank - 3);
  attributes.keep = (node.flags() & kKeepDims) != 0 || builder.declared_rank(node.output_id()) == rank;
  Extent y;
  for (int d = 0; d < rank; ++d) {
    if ((attributes.mask >> d & 1U) == 0) {
      y.append(x.size(d), x.is_dynamic(d));
    } else if (attributes.keep) {
      y.append(1, false);
    }
  }
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), y, builder.value(input).dtype));
  builder.emit(Op::Reduce, {input}, output, attributes);
  return Error::Ok;
}

constexpr NodeKind kKinds[] = {
    row<fb::Pooling2D, build_max_pool>(fb::Operator::MaxPooling2d, true),
    row<fb::Pooling2D, build_average_pool>(fb::Operator::AvgPooling2d, true),
    row<fb::Unary, build_global_average_pool>(fb::Operator::GlobalAvgPooling2d, true),
};

}  // namespace

constinit const std::span<const NodeKind> pooling_kinds = kKinds;

}  // namespace wb::xnnpack
