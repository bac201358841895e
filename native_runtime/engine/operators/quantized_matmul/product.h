// C = A B for integers and a packed B, finished: all products of integers end here.
#pragma once

#include "engine/operators/common/epilogue.h"
#include "engine/operators/quantized_matmul/tile.h"
#include "engine/pool.h"

namespace wb::engine::WB_ISA::quantized {

// Rows of A are written on demand: rows [i, i + rows), `ld` apart; as DotLeft, see copy_left (left.h).
struct LeftRows {
  const void* self = nullptr;
  void (*fill)(const void* self, std::int64_t i, int rows, DotLeft* to, std::int64_t ld) = nullptr;
};

// What belongs to the columns of B, as tiles want it: as many elements as B has columns with what fills the last
// vector.
struct Columns {
  const std::int32_t* start = nullptr;
  const std::int32_t* sums = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;
  // Both in units of the result's scale; null where there is none, or where numbers may be near 2^31 of them.
  const float* direct_scale = nullptr;
  const float* direct_bias = nullptr;
  float direct_inverse = 0;  // 1 / that scale
  std::int64_t group = 0;    // rows of B in a group of scales; 0: there are none
  const float* weight_sums = nullptr;
};

// What becomes of numbers.
struct Finish {
  // May integers be stored as Columns::direct_scale has them?
  [[nodiscard]] bool direct(const Columns& columns) const {
    return rest == nullptr && store.bytes && columns.direct_scale != nullptr && columns.direct_inverse == store.inverse;
  }

  Store store;
  const Epilogue* rest = nullptr;  // done before they are stored, after `number_store`'s clamp; null when there is none
  Store numbers;                   // with `rest`: before it
};

struct Product {
  std::int64_t m = 0;
  PackedIntegers b;
  Columns columns;
  LeftRows a;
  // Of rows that have their own: scales and zero points; else null.
  const RowQuantization* rows = nullptr;
  float row_scale = 1;      // of groups, where rows have none of their own
  std::int32_t a_zero = 0;  // as the rows are stored
  std::int32_t b_zero = 0;  // as B is stored
  std::byte* c = nullptr;
  std::int64_t element = 1;  // bytes of one of C
  std::int64_t ldc = 0;
  Finish finish;
  // Where row i of C stands: at row row0 + i / period row_period + i % period row_step of the result, whose rows are
  // ldc elements apart (c is that of row 0). No tile crosses a multiple of `period`; 0: one row after the other.
  std::int64_t row0 = 0, period = 0, row_period = 0, row_step = 1;
  std::int64_t col0 = 0;  // of the result, for the epilogue
};

// Elements between rows of A, and bytes of scratch memory for each thread.
[[nodiscard]] std::int64_t left_ld(std::int64_t k);
[[nodiscard]] std::int64_t product_scratch(std::int64_t k);

// Rows [i0, i1) of C, columns of panels [p0, p1).
void product_part(const Product& product, std::int64_t i0, std::int64_t i1, std::int64_t p0, std::int64_t p1,
                  std::byte* scratch);

// All of C, split among the threads; `scratch` has product_scratch bytes for each of them.
void product_all(const Product& product, Pool& pool, std::byte* scratch);

}  // namespace wb::engine::WB_ISA::quantized
