// Blocks of keys and values, arranged for the tiles of the matrix products.
#pragma once

#include <cstdint>

namespace wb::engine::WB_ISA::attention {

// Keys [0, count) of `size` elements each, rows `stride` apart, times `factor`, to panels of kPanel keys:
// panels[(j / kPanel) size kPanel + d kPanel + j % kPanel] = factor keys[j stride + d]. Keys past the end are zeros.
void pack_keys(const float* keys, std::int64_t stride, std::int64_t count, std::int64_t size, float factor,
               float* panels);

// Values [0, count) of `size` elements each, rows `stride` apart, to rows `width` apart, zeros behind them.
void pack_values(const float* values, std::int64_t stride, std::int64_t count, std::int64_t size, std::int64_t width,
                 float* rows);

}  // namespace wb::engine::WB_ISA::attention
