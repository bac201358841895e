// Transposes in memory: out[i * out_row + j] = in[j * in_row + i].
#pragma once

#include <cstddef>
#include <cstdint>

namespace wb::engine::WB_ISA {

// i < rows, j < cols; elements of 1, 2, 4 or 8 bytes.
void transpose_tiles(const std::byte* in, std::int64_t in_row, std::byte* out, std::int64_t out_row, std::int64_t rows,
                     std::int64_t cols, std::size_t element);

}  // namespace wb::engine::WB_ISA
