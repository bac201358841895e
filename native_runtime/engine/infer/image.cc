// Operators that slide a window over images [n, h, w, c].
#include <cmath>

#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {
namespace {

struct Axis {
  const char* name;
  std::int64_t size, kernel, stride, dilation, before, after;
};

Axis rows(const Shape& x, const Window& w) {
  return {"height", x.sizes[1], w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom};
}
Axis columns(const Shape& x, const Window& w) {
  return {"width", x.sizes[2], w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right};
}

// Positions of the window along an axis.
Error positions(const InferContext& context, const Axis& axis, bool ceil_mode, std::int64_t* count) {
  const std::int64_t padded = axis.size + axis.before + axis.after;
  const std::int64_t free = padded - axis.dilation * (axis.kernel - 1) - 1;
  if (padded < 0 || free < 0) {
    return context.report.fail(
        Error::InvalidProgram,
        "a window of %lld in dilation %lld does not fit into a %s of %lld with padding %lld, %lld",
        static_cast<long long>(axis.kernel), static_cast<long long>(axis.dilation), axis.name,
        static_cast<long long>(axis.size), static_cast<long long>(axis.before), static_cast<long long>(axis.after));
  }
  *count = free / axis.stride + 1;
  if (ceil_mode && free % axis.stride != 0) {
    // A window that would begin behind the image and the padding before it does not count, as in PyTorch.
    if (*count * axis.stride < axis.size + axis.before) ++*count;
  }
  return Error::Ok;
}

Error expect_image(const InferContext& context) {
  if (context.in(0).rank == 4) return Error::Ok;
  return context.report.fail(Error::InvalidProgram, "expected an image [n, h, w, c], found %s",
                             ShapeText(context.in(0)).text);
}

// The weight must hold every element that its order leads to.
Error check_weight(const InferContext& context, std::int64_t cout, std::int64_t cin) {
  const Attributes& a = context.node.attributes;
  const std::int64_t numel = context.in(1).numel();
  if (a.groups > cout || a.groups > cin || cin % a.groups != 0 || cout % a.groups != 0) {
    return context.report.fail(Error::InvalidProgram, "%lld groups of %lld input and %lld output channels",
                               static_cast<long long>(a.groups), static_cast<long long>(cin),
                               static_cast<long long>(cout));
  }
  const std::int64_t counts[4] = {cout, cin / a.groups, a.window.kernel_h, a.window.kernel_w};
  const std::int64_t steps[4] = {a.weight_order.cout, a.weight_order.cin, a.weight_order.h, a.weight_order.w};
  std::int64_t expected = 1;
  std::int64_t last = 0;
  bool fits = true;
  for (int i = 0; i < 4 && fits; ++i) {
    std::int64_t reach = 0;
    fits = !__builtin_mul_overflow(expected, counts[i], &expected) && steps[i] >= 0 &&
           !__builtin_mul_overflow(counts[i] - 1, steps[i], &reach) && !__builtin_add_overflow(last, reach, &last);
  }
  if (fits && expected == numel && last < numel) return Error::Ok;
  return context.report.fail(
      Error::InvalidProgram,
      "weight %s: expected %lld x %lld x %lld x %lld elements in the order {%lld, %lld, %lld, "
      "%lld}",
      ShapeText(context.in(1)).text, static_cast<long long>(counts[0]), static_cast<long long>(counts[1]),
      static_cast<long long>(counts[2]), static_cast<long long>(counts[3]), static_cast<long long>(steps[0]),
      static_cast<long long>(steps[1]), static_cast<long long>(steps[2]), static_cast<long long>(steps[3]));
}

Error check_filter(const InferContext& context) {
  WB_TRY(expect_image(context));
  if (context.out().rank != 4) {
    return context.report.fail(Error::InvalidProgram, "expected a result [n, h, w, c], found %s",
                               ShapeText(context.out()).text);
  }
  const std::int64_t cout = context.out().sizes[3];
  WB_TRY(check_weight(context, cout, context.in(0).sizes[3]));
  if (context.has(2) && context.in(2).numel() != cout) {
    return context.report.fail(Error::InvalidProgram, "bias: expected [%lld], found %s", static_cast<long long>(cout),
                               ShapeText(context.in(2)).text);
  }
  return Error::Ok;
}

Error slide(const InferContext& context, bool ceil_mode, std::int64_t channels) {
  const Shape x = context.in(0);
  const Window& window = context.node.attributes.window;
  Shape& out = context.out();
  out.rank = 4;
  out.sizes[0] = x.sizes[0];
  out.sizes[3] = channels;
  WB_TRY(positions(context, rows(x, window), ceil_mode, &out.sizes[1]));
  return positions(context, columns(x, window), ceil_mode, &out.sizes[2]);
}

}  // namespace

Error infer_convolution(const InferContext& context) {
  WB_TRY(check_filter(context));
  return slide(context, false, context.out().sizes[3]);
}

Error infer_pool(const InferContext& context) {
  WB_TRY(expect_image(context));
  return slide(context, context.node.attributes.window.ceil_mode, context.in(0).sizes[3]);
}

Error infer_transposed_convolution(const InferContext& context) {
  WB_TRY(check_filter(context));
  const Attributes& a = context.node.attributes;
  const auto size = [](const Axis& axis, std::int64_t output_padding) {
    return (axis.size - 1) * axis.stride - axis.before - axis.after + axis.dilation * (axis.kernel - 1) +
           output_padding + 1;
  };
  Shape& out = context.out();
  out.sizes[0] = context.in(0).sizes[0];
  out.sizes[1] = size(rows(context.in(0), a.window), a.output_padding_h);
  out.sizes[2] = size(columns(context.in(0), a.window), a.output_padding_w);
  if (out.sizes[1] < 1 || out.sizes[2] < 1 || context.in(0).sizes[1] < 1 || context.in(0).sizes[2] < 1) {
    return context.report.fail(Error::InvalidProgram, "an image %s gives a result of %s", ShapeText(context.in(0)).text,
                               ShapeText(out).text);
  }
  return Error::Ok;
}

Error infer_upsample(const InferContext& context) {
  WB_TRY(expect_image(context));
  const Attributes& a = context.node.attributes;
  Shape out = context.in(0);
  const std::int64_t fixed[2] = {a.out_h, a.out_w};
  const double scales[2] = {a.scale_h, a.scale_w};
  for (int i = 0; i < 2; ++i) {
    std::int64_t& size = out.sizes[1 + i];
    const double scaled = std::floor(static_cast<double>(size) * scales[i]);
    const bool fits = fixed[i] > 0 || (scaled >= 1 && scaled <= static_cast<double>(kMaxElements));  // false for NaN
    if (!fits || size < 1) {
      return context.report.fail(Error::InvalidProgram, "an image %s can't be scaled by %g",
                                 ShapeText(context.in(0)).text, scales[i]);
    }
    size = fixed[i] > 0 ? fixed[i] : static_cast<std::int64_t>(scaled);
  }
  context.out() = out;
  return Error::Ok;
}

}  // namespace wb::engine
