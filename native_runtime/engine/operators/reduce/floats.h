// Reductions of floats.
#pragma once

#include "engine/operator.h"
#include "engine/operators/reduce/layout.h"

namespace wb::engine::WB_ISA {

// Output 0 of the node, which is of floats as input 0 is; truth values are 0 and 1.
void reduce_floats(const RunContext& context, const ReduceLayout& layout, float* out);

// Integers and truth values: whatever is not floats, through 64 bits. False when there is no such reduction.
[[nodiscard]] bool integers_reduce(ReduceFn fn);
void reduce_integers(const RunContext& context, const ReduceLayout& layout);

}  // namespace wb::engine::WB_ISA
