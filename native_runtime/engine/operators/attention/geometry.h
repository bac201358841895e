// Where the heads of the operands of an attention stand in memory.
#pragma once

#include "engine/operator.h"

namespace wb::engine::WB_ISA::attention {

inline constexpr int kMaxLead = kMaxRank;

// One operand: for each combination of leading indices and each head a matrix [rows, columns] with dense columns.
struct HeadsView {
  std::int64_t lead_stride[kMaxLead] = {};  // 0 where the operand is broadcast
  std::int64_t heads = 1, head_stride = 0;
  std::int64_t rows = 0, row_stride = 0;
  std::int64_t columns = 0;
  std::int64_t offset = 0;
};

// The mask, or none: steps in elements of [..., h, l, s].
struct MaskView {
  bool present = false, is_bool = false;
  std::int64_t lead_stride[kMaxLead] = {};
  std::int64_t head_stride = 0, row_stride = 0, column_stride = 0;
};

struct Geometry {
  HeadsView q, k, v, out;
  MaskView mask;
  int lead = 0;
  std::int64_t lead_size[kMaxLead] = {};
  std::int64_t batch = 1;  // product of lead_size
  std::int64_t heads = 1;  // of the result
  std::int64_t queries = 0, keys = 0, key_size = 0, value_size = 0;
};

// Reads the sizes of the operands, and says in words what does not fit.
[[nodiscard]] Error read_geometry(Setup& setup, const Node& node, const Operands& operands, Geometry* geometry);

// Of a combination of leading indices (counted in the order of the sizes) and a head: the first element.
[[nodiscard]] std::int64_t offset_of(const Geometry& geometry, const HeadsView& view, std::int64_t lead,
                                     std::int64_t head);
[[nodiscard]] std::int64_t mask_offset_of(const Geometry& geometry, std::int64_t lead, std::int64_t head);

}  // namespace wb::engine::WB_ISA::attention
