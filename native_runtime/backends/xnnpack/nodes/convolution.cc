// Convolutions, depthwise ones and transposed ones.
#include "backends/xnnpack/nodes/kinds.h"
#include "backends/xnnpack/nodes/window.h"

namespace wb::xnnpack {
namespace {

using engine::kNoValue;
using engine::Op;

enum class Kind : std::uint8_t { Plain, Depthwise, Transposed };

Error check(const Builder& builder, const fb::Conv& node) {
  WB_TRY(builder.allow_flags(node.flags(), 0));
  const struct {
    const char* name;
    std::uint32_t value, low;
  } fields[] = {
      {"padding_top", node.padding_top(), 0},
      {"padding_right", node.padding_right(), 0},
      {"padding_bottom", node.padding_bottom(), 0},
      {"padding_left", node.padding_left(), 0},
      {"kernel_height", node.kernel_height(), 1},
      {"kernel_width", node.kernel_width(), 1},
      {"subsampling_height", node.subsampling_height(), 1},
      {"subsampling_width", node.subsampling_width(), 1},
      {"dilation_height", node.dilation_height(), 1},
      {"dilation_width", node.dilation_width(), 1},
      {"group_input_channels", node.group_input_channels(), 1},
      {"group_output_channels", node.group_output_channels(), 1},
      {"groups", node.groups(), 1},
      {"adjustment_height", node.adjustment_height(), 0},
      {"adjustment_width", node.adjustment_width(), 0},
  };
  for (const auto& field : fields) WB_TRY(builder.in_range(field.name, field.value, field.low, kMaxPixels));
  return Error::Ok;
}

engine::Attributes attributes_of(const fb::Conv& node, Kind kind) {
  engine::Attributes attributes;
  attributes.window = {.kernel_h = node.kernel_height(),
                       .kernel_w = node.kernel_width(),
                       .stride_h = node.subsampling_height(),
                       .stride_w = node.subsampling_width(),
                       .dilation_h = node.dilation_height(),
                       .dilation_w = node.dilation_width(),
                       .pad_top = node.padding_top(),
                       .pad_bottom = node.padding_bottom(),
                       .pad_left = node.padding_left(),
                       .pad_right = node.padding_right()};
  attributes.groups = node.groups();
  const std::int64_t kh = node.kernel_height();
  const std::int64_t kw = node.kernel_width();
  const std::int64_t cin = node.group_input_channels();
  const std::int64_t cout = std::int64_t{node.group_output_channels()} * node.groups();
  if (kind == Kind::Depthwise) {
    attributes.weight_order = {.cout = 1, .cin = 1, .h = kw * cout, .w = cout};
  } else {
    attributes.weight_order = {.cout = kh * kw * cin, .cin = 1, .h = kw * cin, .w = cin};
  }
  if (kind == Kind::Transposed) {
    attributes.output_padding_h = node.adjustment_height();
    attributes.output_padding_w = node.adjustment_width();
  }
  return attributes;
}

Error check_filter(const Builder& builder, const fb::Conv& node, Kind kind, ValueId filter) {
  const std::int64_t cout = std::int64_t{node.group_output_channels()} * node.groups();
  const std::int64_t plain[4] = {cout, node.kernel_height(), node.kernel_width(), node.group_input_channels()};
  const std::int64_t depthwise[4] = {1, node.kernel_height(), node.kernel_width(), cout};
  Extent expected;
  for (int d = 0; d < 4; ++d) expected.append(kind == Kind::Depthwise ? depthwise[d] : plain[d], false);
  if (builder.value(filter).kind != engine::ValueKind::Constant) {
    return builder.fail(Error::NotSupported, "filter_id: expected a constant");
  }
  if (builder.value(filter).shape == expected.shape) return Error::Ok;
  return builder.fail(Error::InvalidProgram, "filter_id: expected the sizes %s, found %s", text_of(expected).c_str(),
                      text_of(builder.extent(filter)).c_str());
}

std::int64_t pixels_of_result(std::int64_t pixels, std::int64_t padding, std::int64_t kernel, std::int64_t stride,
                              std::int64_t dilation, std::int64_t adjustment, Kind kind) {
  if (kind != Kind::Transposed) return window_count(pixels, padding, kernel, stride, dilation);
  if (pixels == 0) return 0;
  return stride * (pixels - 1) + adjustment + dilation * (kernel - 1) + 1 - padding;
}

Result<Extent> result_of(const Builder& builder, const Extent& x, const engine::Attributes& attributes,
                         std::int64_t channels, Kind kind) {
  const engine::Window& window = attributes.window;
  const std::int64_t h = pixels_of_result(x.size(1), window.pad_top + window.pad_bottom, window.kernel_h,
                                          window.stride_h, window.dilation_h, attributes.output_padding_h, kind);
  const std::int64_t w = pixels_of_result(x.size(2), window.pad_left + window.pad_right, window.kernel_w,
                                          window.stride_w, window.dilation_w, attributes.output_padding_w, kind);
  if (h <= 0 || w <= 0) {
    return builder.fail(Error::InvalidProgram, "an image of sizes %s gives a result of %lld x %lld pixels",
                        text_of(x).c_str(), static_cast<long long>(h), static_cast<long long>(w));
  }
  Extent y;
  y.append(x.size(0), x.is_dynamic(0));
  y.append(h, x.is_dynamic(1));
  y.append(w, x.is_dynamic(2));
  y.append(channels, false);
  return y;
}

template <Kind kind>
Error build(Builder& builder, const fb::Conv& node) {
  WB_TRY(check(builder, node));
  WB_ASSIGN(const ValueId input, builder.input("input1_id", node.input1_id()));
  WB_ASSIGN(const ValueId filter, builder.input("filter_id", node.filter_id()));
  WB_ASSIGN(ValueId bias, builder.optional_input("bias_id", node.bias_id()));
  WB_TRY(builder.expect_rank("input1_id", input, 4));
  WB_TRY(check_filter(builder, node, kind, filter));
  const Extent x = builder.extent(input);
  const std::int64_t cin = std::int64_t{node.group_input_channels()} * node.groups();
  const std::int64_t cout = std::int64_t{node.group_output_channels()} * node.groups();
  if (x.size(3) != cin || (kind == Kind::Depthwise && node.group_input_channels() != 1)) {
    return builder.fail(Error::InvalidProgram, "an image of sizes %s, %u groups of %u input channels",
                        text_of(x).c_str(), node.groups(), node.group_input_channels());
  }
  if (bias != kNoValue) {
    if (builder.value(bias).shape.numel() != cout || builder.value(bias).kind != engine::ValueKind::Constant) {
      return builder.fail(Error::InvalidProgram, "bias_id: expected a constant of %lld elements, found sizes %s",
                          static_cast<long long>(cout), text_of(builder.extent(bias)).c_str());
    }
    bias = builder.reshaped(bias, {cout});
  }
  const engine::Attributes attributes = attributes_of(node, kind);
  WB_ASSIGN(const Extent y, result_of(builder, x, attributes, cout, kind));
  WB_ASSIGN(const ValueId output, builder.output("output_id", node.output_id(), y, builder.value(input).dtype));
  builder.emit(kind == Kind::Transposed ? Op::TransposedConvolution : Op::Convolution, {input, filter, bias}, output,
               attributes);
  return Error::Ok;
}

constexpr NodeKind kKinds[] = {
    row<fb::Conv, build<Kind::Plain>>(fb::Operator::Conv2d, true),
    row<fb::Conv, build<Kind::Depthwise>>(fb::Operator::DepthwiseConv2d, true),
    row<fb::Conv, build<Kind::Transposed>>(fb::Operator::ConvTranspose2d, true),
};

}  // namespace

constinit const std::span<const NodeKind> convolution_kinds = kKinds;

}  // namespace wb::xnnpack
