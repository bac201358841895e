#include "engine/operators/move/strided.h"

#include <algorithm>
#include <new>

#include "engine/operators/common/work.h"
#include "engine/operators/move/runs.h"
#include "engine/operators/move/tiles.h"

namespace wb::engine::WB_ISA {
namespace {

// Where an element stands: the source's of the first `rank` dimensions.
std::int64_t source_of(const StridedCopy& copy, const int* dims, int count, std::int64_t index, std::int64_t* target,
                       const std::int64_t* out_strides) {
  std::int64_t at = copy.begin;
  *target = 0;
  for (int k = count - 1; k >= 0; --k) {
    const std::int64_t position = index % copy.sizes[dims[k]];
    index /= copy.sizes[dims[k]];
    at += position * copy.strides[dims[k]];
    *target += position * out_strides[dims[k]];
  }
  return at;
}

template <typename T>
void gather_run(std::byte* to, const std::byte* from, std::int64_t stride, std::int64_t count) {
  T* out = reinterpret_cast<T*>(to);
  const T* in = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < count; ++i) out[i] = in[i * stride];
}

void copy_line(std::byte* to, const std::byte* from, std::int64_t stride, std::int64_t count, std::size_t element) {
  if (stride == 1) return copy_run(to, from, static_cast<std::size_t>(count) * element);
  if (stride == 0) return fill_run(to, from, element, count);
  switch (element) {
    case 1: return gather_run<std::uint8_t>(to, from, stride, count);
    case 2: return gather_run<std::uint16_t>(to, from, stride, count);
    case 4: return gather_run<std::uint32_t>(to, from, stride, count);
    default: return gather_run<std::uint64_t>(to, from, stride, count);
  }
}

// Lines of the innermost dimension, in the loop of the one around it.
void run_lines(const StridedCopy& copy, Pool& pool, const std::byte* from, std::byte* to,
               const std::int64_t* out_strides, std::int64_t numel) {
  const int last = copy.rank - 1;
  int dims[kMaxRank];
  for (int d = 0; d + 1 < last; ++d) dims[d] = d;
  const int outer_rank = std::max(0, last - 1);
  const std::int64_t rows = copy.rank > 1 ? copy.sizes[last - 1] : 1;
  const std::int64_t row = copy.rank > 1 ? copy.strides[last - 1] : 0;
  const std::int64_t cols = copy.sizes[last];
  const auto size = static_cast<std::int64_t>(copy.element);
  // Long lines of few rows are cut, for threads.
  const std::int64_t outer = numel / (rows * cols);
  split(pool, outer * rows, numel, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end;) {
      std::int64_t target = 0;
      const std::int64_t source = source_of(copy, dims, outer_rank, i / rows, &target, out_strides);
      const std::int64_t stop = std::min(end, (i / rows + 1) * rows);
      for (std::int64_t r = i % rows; i < stop; ++i, ++r) {
        copy_line(to + (target + r * cols) * size, from + (source + r * row) * size, copy.strides[last], cols,
                  copy.element);
      }
    }
  });
}

// The innermost dimension of the source is dimension `inner` of the result: tiles of both.
void run_tiles(const StridedCopy& copy, int inner, Pool& pool, const std::byte* from, std::byte* to,
               const std::int64_t* out_strides, std::int64_t numel) {
  const int last = copy.rank - 1;
  int dims[kMaxRank];
  int count = 0;
  for (int d = 0; d < last; ++d) {
    if (d != inner) dims[count++] = d;
  }
  const std::int64_t rows = copy.sizes[inner];
  const std::int64_t cols = copy.sizes[last];
  const auto size = static_cast<std::int64_t>(copy.element);
  constexpr std::int64_t kRows = 64;
  const std::int64_t pieces = (rows + kRows - 1) / kRows;
  split(pool, numel / (rows * cols) * pieces, numel * 2, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end;) {
      std::int64_t target = 0;
      const std::int64_t source = source_of(copy, dims, count, i / pieces, &target, out_strides);
      const std::int64_t stop = std::min(end, (i / pieces + 1) * pieces);
      const std::int64_t first = i % pieces * kRows;
      const std::int64_t height = std::min(rows, (i % pieces + stop - i) * kRows) - first;
      transpose_tiles(from + (source + first) * size, copy.strides[last],
                      to + (target + first * out_strides[inner]) * size, out_strides[inner], height, cols,
                      copy.element);
      i = stop;
    }
  });
}

}  // namespace

void StridedCopy::push(std::int64_t size, std::int64_t stride) {
  if (size == 1) return;
  if (rank > 0 && strides[rank - 1] == stride * size) {
    sizes[rank - 1] *= size;
    strides[rank - 1] = stride;
    return;
  }
  sizes[rank] = size;
  strides[rank++] = stride;
}

void StridedCopy::run(Pool& pool, const void* from, void* to) const {
  std::int64_t numel = 1;
  std::int64_t out_strides[kMaxRank] = {};
  for (int d = rank - 1; d >= 0; --d) {
    out_strides[d] = numel;
    numel *= sizes[d];
  }
  if (numel == 0) return;
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  if (rank == 0) {
    std::memcpy(target, source + static_cast<std::size_t>(begin) * element, element);
    return;
  }
  if (strides[rank - 1] > 1) {
    for (int d = 0; d + 1 < rank; ++d) {
      if (strides[d] == 1) return run_tiles(*this, d, pool, source, target, out_strides, numel);
    }
  }
  run_lines(*this, pool, source, target, out_strides, numel);
}

Error prepare_copy(PrepareContext& context) {
  void* memory = context.setup.allocate(sizeof(StridedCopy));
  if (memory == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a copy");
  context.state = new (memory) StridedCopy;
  return Error::Ok;
}

void run_copy(const RunContext& context) {
  static_cast<const StridedCopy*>(context.state)
      ->run(context.pool, context.operands.inputs[0].data, context.operands.outputs[0].data);
}

}  // namespace wb::engine::WB_ISA
