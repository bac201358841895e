// A pool at its present sizes.
#pragma once

#include "engine/operator.h"
#include "engine/operators/common/lanes.h"
#include "engine/operators/pooling/axis.h"

namespace wb::engine::WB_ISA {

struct Pooling {
  WindowAxis rows, columns;
  std::int64_t batch, out_h, out_w, channels;
  bool average, include_pad, separable;
  std::int64_t divisor;

  Pooling(const Node& node, const Operands& operands)
      : rows(WindowAxis::rows(operands.inputs[0].shape, node.attributes.window)),
        columns(WindowAxis::columns(operands.inputs[0].shape, node.attributes.window)),
        batch(operands.outputs[0].shape.sizes[0]),
        out_h(operands.outputs[0].shape.sizes[1]),
        out_w(operands.outputs[0].shape.sizes[2]),
        channels(operands.outputs[0].shape.sizes[3]),
        average(node.op == Op::AvgPool),
        include_pad(node.attributes.window.count_include_pad),
        divisor(node.attributes.window.divisor) {
    const std::int64_t together = rows.kernel * columns.size + columns.kernel * out_w;
    separable = out_w > 1 && columns.kernel > 1 &&
                (channels < kFloats || rows.kernel * columns.kernel * out_w * 4 > together * 5);
  }

  // What sums of the window are divided by; 1 for MaxPool.
  [[nodiscard]] float divisor_of(const Taps& y, const Taps& x) const {
    if (!average || y.count * x.count == 0) return 1.0F;
    if (divisor != 0) return static_cast<float>(divisor);
    return static_cast<float>(include_pad ? y.padded * x.padded : y.count * x.count);
  }
};

}  // namespace wb::engine::WB_ISA
