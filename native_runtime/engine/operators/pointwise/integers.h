// Pointwise programs whose operands and result are integers or truth values: computed in 64 bits, which wrap.
#pragma once

#include "engine/operators/pointwise/layout.h"

namespace wb::engine::WB_ISA {

inline constexpr std::int64_t kIntegerBlock = 256;

[[nodiscard]] bool integers_have(Fn fn);
void run_integers(const RunContext& context, const PointwiseLayout& layout);

}  // namespace wb::engine::WB_ISA
