// C = A B + bias, finished, for a packed B: all dense operators end here.
#pragma once

#include "engine/operators/matmul/finish.h"
#include "engine/operators/matmul/packed.h"
#include "engine/pool.h"

namespace wb::engine::WB_ISA::dense {

// The rows of A: in memory `lda` apart, or written on demand.
struct RowSource {
  const float* data = nullptr;
  std::int64_t lda = 0;
  const void* self = nullptr;
  // Elements [k0, k0 + kc) of rows [i, i + rows), rows ld apart.
  void (*fill)(const void* self, std::int64_t i, int rows, std::int64_t k0, std::int64_t kc, float* to,
               std::int64_t ld) = nullptr;
  // If not null and true: rows [i, i + rows), with all of their k elements, stand in memory as `tile` now says.
  bool (*place)(const void* self, std::int64_t i, int rows, Tile* tile) = nullptr;
};

struct Product {
  std::int64_t m = 0;
  PackedMatrix b;
  RowSource a;
  float* c = nullptr;
  std::int64_t ldc = 0;
  Finish finish;
  // If not 0, no tile crosses a multiple of `period` rows, and rows of C that far apart are c_period elements apart.
  std::int64_t period = 0, c_period = 0;
  // Where C stands in the result, for what is left of the epilogue: the row of C's first row, how far the next ones are
  // and those a period further.
  std::int64_t row0 = 0, row_step = 1, row_period = 0;
  std::int64_t col0 = 0;
};

// Elements of scratch memory for each thread: a tile of A.
inline constexpr std::int64_t kRowScratchLd = kBlockK + kWidth;
inline constexpr std::int64_t kRowScratch = kNarrowRows * kRowScratchLd;

// Rows [i0, i1) of C, columns of panels [p0, p1).
void product_part(const Product& product, std::int64_t i0, std::int64_t i1, std::int64_t p0, std::int64_t p1,
                  float* scratch);

// All of C, split among the threads; `scratch` has kRowScratch elements for each of them.
void product_all(const Product& product, Pool& pool, float* scratch);

}  // namespace wb::engine::WB_ISA::dense
