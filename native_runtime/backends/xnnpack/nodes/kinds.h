// The families of node kinds: each file here ends with the table of the kinds that it builds.
#pragma once

#include <span>

#include "backends/xnnpack/builder.h"

namespace wb::xnnpack {

extern const std::span<const NodeKind> concatenate_kinds;
extern const std::span<const NodeKind> convolution_kinds;
extern const std::span<const NodeKind> elementwise_kinds;
extern const std::span<const NodeKind> matmul_kinds;
extern const std::span<const NodeKind> move_kinds;
extern const std::span<const NodeKind> pooling_kinds;
extern const std::span<const NodeKind> resize_kinds;
extern const std::span<const NodeKind> softmax_kinds;

// Null for a kind that is not read.
[[nodiscard]] const NodeKind* find_kind(fb::Operator kind);

// Clamp is the one kind whose bounds are no afterthought.
Error build_clamp(Builder& builder, const fb::Unary& node, float low, float high);

// The rows of a family: its functions take the table that the union holds.
template <typename T, Error (*Build)(Builder&, const T&)>
constexpr NodeKind row(fb::Operator kind, bool bounds = false) {
  return {kind, [](Builder& builder, const void* node) { return Build(builder, *static_cast<const T*>(node)); },
          bounds};
}

}  // namespace wb::xnnpack
