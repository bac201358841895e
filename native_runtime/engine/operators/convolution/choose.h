// Which method suits a convolution.
#pragma once

#include "engine/operators/convolution/method.h"

namespace wb::engine::WB_ISA::dense {

[[nodiscard]] const Method* choose_method(const Geometry& g, bool constant_weight);

}  // namespace wb::engine::WB_ISA::dense
