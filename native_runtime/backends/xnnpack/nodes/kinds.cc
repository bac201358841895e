#include "backends/xnnpack/nodes/kinds.h"

namespace wb::xnnpack {

const NodeKind* find_kind(fb::Operator kind) {
  for (const auto* family : {&concatenate_kinds, &convolution_kinds, &elementwise_kinds, &matmul_kinds, &move_kinds,
                             &pooling_kinds, &resize_kinds, &softmax_kinds}) {
    for (const NodeKind& row : *family) {
      if (row.kind == kind) return &row;
    }
  }
  return nullptr;
}

}  // namespace wb::xnnpack
