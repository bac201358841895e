// Pad: lines of the last padded dimension (and what follows it, which moves along), each of which is a left border, a
// copied middle and a right border.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/names.h"
#include "engine/operator.h"
#include "engine/operators/common/work.h"
#include "engine/operators/move/runs.h"
#include "kernels/common/convert.h"

namespace wb::engine::WB_ISA {
namespace {

using Mode = Attributes::PadMode;

// The element of a dimension of `size` that stands at a place which may be outside; -1: the fill.
std::int64_t mirrored(std::int64_t at, std::int64_t size, Mode mode) {
  if (at >= 0 && at < size) return at;
  if (mode == Mode::Constant) return -1;
  if (mode == Mode::Replicate) return at < 0 ? 0 : size - 1;
  return at < 0 ? -at : 2 * (size - 1) - at;
}

// The number itself, or the integer that stands for it.
double filling(double number, const TensorView& out) {
  if (out.quantization == nullptr) return number;
  const double low = out.dtype == ScalarType::Byte ? 0 : -128;
  const double zero = out.quantization->zero_point;
  if (number != number) return zero;
  return std::clamp(std::nearbyint(number / static_cast<double>(out.quantization->scale)) + zero, low, low + 255);
}

struct Padding {
  Mode mode;
  int last = 0;                                        // the last padded dimension
  std::int64_t unit = 1;                               // elements behind it
  std::int64_t lines = 1;                              // of the result
  std::int64_t before = 0, in_size = 1, out_size = 1;  // of dimension `last`
  std::int64_t size = 0;                               // bytes of an element
  std::byte fill[8] = {};

  explicit Padding(const RunContext& context) : mode(context.node.attributes.pad_mode) {
    const Attributes& a = context.node.attributes;
    const Shape& in = context.operands.inputs[0].shape;
    const Shape& out = context.operands.outputs[0].shape;
    for (int d = 0; d < in.rank; ++d) {
      if (a.before[d] != 0 || a.after[d] != 0) last = d;
    }
    for (int d = 0; d < last; ++d) lines *= out.sizes[d];
    for (int d = last + 1; d < in.rank; ++d) unit *= in.sizes[d];
    before = a.before[last];
    in_size = in.sizes[last];
    out_size = out.sizes[last];
    const ScalarType type = context.operands.outputs[0].dtype;
    size = static_cast<std::int64_t>(element_size(type));
    const auto store = kernels::WB_ISA::find_store(type, kernels::WB_ISA::Lane::F64);
    const double number = filling(a.fill, context.operands.outputs[0]);
    store(fill, 1, &number, 1);
  }
};

// Where the line of the source begins that becomes the line with this number; -1: nowhere.
std::int64_t source_line(const RunContext& context, const Padding& padding, std::int64_t line) {
  const Attributes& a = context.node.attributes;
  const Shape& in = context.operands.inputs[0].shape;
  const Shape& out = context.operands.outputs[0].shape;
  std::int64_t at = 0;
  std::int64_t stride = 1;
  for (int d = padding.last - 1; d >= 0; --d) {
    const std::int64_t place = mirrored(line % out.sizes[d] - a.before[d], in.sizes[d], padding.mode);
    line /= out.sizes[d];
    if (place < 0) return -1;
    at += place * stride;
    stride *= in.sizes[d];
  }
  return at;
}

void pad_line(const Padding& padding, const std::byte* from, std::byte* to) {
  const std::int64_t unit = padding.unit * padding.size;
  // The middle: places [first, last) of the result are elements of the source.
  const std::int64_t first = std::clamp<std::int64_t>(padding.before, 0, padding.out_size);
  const std::int64_t last = std::clamp<std::int64_t>(padding.before + padding.in_size, first, padding.out_size);
  const auto border = [&](std::int64_t begin, std::int64_t end) {
    if (padding.mode == Mode::Constant) {
      fill_run(to + begin * unit, padding.fill, static_cast<std::size_t>(padding.size), (end - begin) * padding.unit);
      return;
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t place = mirrored(i - padding.before, padding.in_size, padding.mode);
      copy_run(to + i * unit, from + place * unit, static_cast<std::size_t>(unit));
    }
  };
  border(0, first);
  if (last > first) {
    copy_run(to + first * unit, from + (first - padding.before) * unit,
             static_cast<std::size_t>((last - first) * unit));
  }
  border(last, padding.out_size);
}

Error pad_prepare(PrepareContext& context) {
  const ScalarType type = context.operands.outputs[0].dtype;
  if (kernels::WB_ISA::is_computable(type) && context.operands.inputs[0].shape.rank > 0) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "padding of %s of rank %d", name_of(type),
                            context.operands.inputs[0].shape.rank);
}

Error pad_shape(ShapeContext& /*context*/) { return Error::Ok; }

void pad_run(const RunContext& context) {
  const std::int64_t numel = context.operands.outputs[0].shape.numel();
  if (numel == 0) return;
  const Padding padding(context);
  const auto* from = context.operands.inputs[0].as<const std::byte>();
  auto* to = context.operands.outputs[0].as<std::byte>();
  const std::int64_t in_line = padding.in_size * padding.unit * padding.size;
  const std::int64_t out_line = padding.out_size * padding.unit * padding.size;
  split(context.pool, padding.lines, numel, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t line = source_line(context, padding, i);
      if (line < 0) {
        fill_run(to + i * out_line, padding.fill, static_cast<std::size_t>(padding.size), out_line / padding.size);
      } else {
        pad_line(padding, from + line * in_line, to + i * out_line);
      }
    }
  });
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(move_pad, {Op::Pad, pad_prepare, pad_shape, pad_run})
