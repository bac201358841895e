// The sizes of a node's results from those of its inputs. Called while a graph is compiled (with the upper bounds) and
// again whenever the sizes of an input change, so it allocates nothing. The rules trust neither attributes nor shapes:
// whatever they accept, an operator can compute.
#pragma once

#include <span>

#include "core/error.h"
#include "engine/graph.h"
#include "engine/report.h"

namespace wb::engine {

struct InferContext {
  const Reporter& report;
  const Node& node;
  std::span<const Shape* const> inputs;  // null: not given
  // On entry what the graph says (the number of output channels is read from there), on return what follows from the
  // inputs.
  std::span<Shape> outputs;

  [[nodiscard]] const Shape& in(std::size_t i) const { return *inputs[i]; }
  [[nodiscard]] bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  [[nodiscard]] Shape& out() const { return outputs[0]; }
};

// Reports and returns InvalidProgram for sizes that don't fit together.
Error infer(const InferContext& context);

// By family, one file each.
Error infer_pointwise(const InferContext& context);
Error infer_matmul(const InferContext& context);
Error infer_convolution(const InferContext& context);
Error infer_transposed_convolution(const InferContext& context);
Error infer_pool(const InferContext& context);
Error infer_upsample(const InferContext& context);
Error infer_reduce(const InferContext& context);
Error infer_same(const InferContext& context);  // Softmax, Convert, Copy, Quantize, Dequantize
Error infer_norm(const InferContext& context);
Error infer_group_norm(const InferContext& context);
Error infer_attention(const InferContext& context);
Error infer_recurrent(const InferContext& context);
Error infer_embedding(const InferContext& context);
Error infer_gather(const InferContext& context);
Error infer_transpose(const InferContext& context);
Error infer_reshape(const InferContext& context);
Error infer_expand(const InferContext& context);
Error infer_concat(const InferContext& context);
Error infer_slice(const InferContext& context);
Error infer_pad(const InferContext& context);

// result[d] = broadcast(a[d], b[d]), dimensions aligned at the end; false when they don't fit. `result` may be a or b.
[[nodiscard]] bool broadcast(const Shape& a, const Shape& b, Shape* result);
// True if `from` can be broadcast to `to`.
[[nodiscard]] bool broadcasts_to(const Shape& from, const Shape& to);
// The number of elements, or -1 when a size is negative or there are more than kMaxElements.
[[nodiscard]] std::int64_t checked_numel(const Shape& shape);

}  // namespace wb::engine
