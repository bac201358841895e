// Which values are stored with their dimensions permuted, so that the fewest bytes are moved by Transpose nodes.
//
// Take one permutation and its inverse, say NCHW -> NHWC. Values that such Transpose nodes connect belong to one of two
// worlds, `outer` (before the permutation) or `inner` (behind it). Each can be stored in the order of its own world or
// in the other's. A Transpose then costs its bytes if its two sides are stored differently and nothing if alike.
// Operators that don't care in which order dimensions stand (pointwise, concat, pad, reduce, ...) take whatever order
// their result is stored in; all others want that of their world. That is a minimum cut over all values at once.
#pragma once

#include "engine/passes/draft.h"

namespace wb::engine {

// How a node can run on permuted dimensions.
enum class Agnostic : std::uint8_t {
  No,
  Yes,        // inputs and result in the same order
  InputOnly,  // the result is the same whatever the order of the input (a reduction that drops dimensions)
};
[[nodiscard]] Agnostic agnostic(const Draft& draft, const Node& node, const Permutation& permutation);

// True if the input takes part in the order of the node's dimensions (indices of a Gather and single elements do not).
[[nodiscard]] bool follows_order(const Draft& draft, const Node& node, std::size_t input);

// The attributes of an agnostic node whose operands are permuted so.
void permute_attributes(Node& node, const Permutation& permutation, int rank);

// True if permuting such a value moves nothing: the dimensions that are not 1 stay in order.
[[nodiscard]] bool moves_nothing(const Permutation& permutation, const Value& value);

}  // namespace wb::engine
