// The innermost loop of products of integers: one tile of C = A B in registers, with what its sums become.
//
//   sum[r][j]    = start[j] + adds[r] + offsets[r] sums[j] + sum over kk of a[r][kk] b[kk][j]
//   number[r][j] = sum[r][j] scale[j] row_scales[r] + bias[j]
//   c[r][j]      = clamp(number), or the integer that stands for it
//
// Groups (of kk, each with scales of its own) are summed as numbers:
//
//   number[r][j] = (sum over groups g of scale[g][j] (sum over kk in g of a b) + offsets[r] weight_sums[j])
//                  row_scales[r] + bias[j]
#pragma once

#include "engine/operators/quantized_matmul/packed.h"

namespace wb::engine::WB_ISA::quantized {

inline constexpr int kTileRows = kernels::WB_ISA::kVectorRegisters == 32 || kFloats == 8 ? 6 : 4;

// How numbers are stored.
struct Store {
  bool bytes = false;       // as integers, else as they are
  float low = 0, high = 0;  // of the numbers themselves, or (bytes) of integers less the zero point
  bool is_signed = true;    // bytes
  float inverse = 1;        // bytes: 1 / scale
  std::int32_t zero = 0;    // bytes
  // Bytes: what comes are numbers in units of the result's scale, none of them near 2^31.
  bool direct = false;
};

struct Tile {
  std::int64_t steps = 0;
  const DotLeft* a = nullptr;
  std::int64_t lda = 0;
  const std::int8_t* b = nullptr;
  std::int64_t ldb = 0;  // bytes from one step (or two that share their bytes) to the next
  std::int8_t nibble_zero = 0;
  const std::int32_t* start = nullptr;
  const std::int32_t* sums = nullptr;     // with `offsets`
  const std::int32_t* offsets = nullptr;  // of rows, or null
  const std::int32_t* adds = nullptr;     // of rows, or null
  const float* scale = nullptr;
  const float* row_scales = nullptr;  // or null
  const float* bias = nullptr;
  // Of groups: scale has a row for each, `columns` apart.
  std::int64_t group_steps = 0, columns = 0;
  const float* weight_sums = nullptr;
  Store store;
  void* c = nullptr;
  std::int64_t ldc = 0;  // elements
  int width = 0;         // columns that are stored
};

using TileFunction = void (*)(const Tile& tile);

// For `rows` rows (1 ... kTileRows) and `vectors` vectors of columns (1 ... kPanelVectors).
[[nodiscard]] TileFunction tile_function(int rows, int vectors, bool nibbles);
// The same for groups; at most kGroupVectors.
inline constexpr int kGroupVectors = kPanelVectors / 2;
[[nodiscard]] TileFunction group_tile_function(int rows, int vectors, bool nibbles);

// Stores `width` numbers (at most kPanelColumns, as many may be read) at `to`.
void store_numbers(const Store& how, const float* numbers, int width, void* to);

}  // namespace wb::engine::WB_ISA::quantized
