#include "backends/xnnpack/nodes/kinds.h"

namespace wb::xnnpack {
namespace {

constexpr std::uint32_t kAlignCorners = 8;

// [n, h, w, c] -> [n, new_height, new_width, c]
Error build_resize(Builder& builder, const fb::ResizeBilinear2D& node) {
  WB_TRY(builder.allow_flags(node.flags(), kAlignCorners));
  WB_TRY(builder.in_range("new_height", node.new_height(), 1, kMaxPixels));
  WB_TRY(builder.in_range("new_width", node.new_width(), 1, kMaxPixels));
  WB_ASSIGN(const ValueId input, builder.input("input_id", node.input_id()));
  WB_TRY(builder.expect_rank("input_id", input, 4));
  Extent extent = builder.extent(input);
  if (extent.size(1) == 0 || extent.size(2) == 0) {
    return builder.fail(Error::InvalidProgram, "input_id: an image of sizes %s", text_of(extent).c_str());
  }
  extent.set(1, node.new_height(), false);
  extent.set(2, node.new_width(), false);
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), extent, builder.value(input).dtype));
  engine::Attributes attributes;
  attributes.align_corners = (node.flags() & kAlignCorners) != 0;
  attributes.out_h = node.new_height();
  attributes.out_w = node.new_width();
  builder.emit(engine::Op::Upsample, {input}, output, attributes);
  return Error::Ok;
}

constexpr NodeKind kKinds[] = {row<fb::ResizeBilinear2D, build_resize>(fb::Operator::StaticResizeBilinear2D)};

}  // namespace

constinit const std::span<const NodeKind> resize_kinds = kKinds;

}  // namespace wb::xnnpack
