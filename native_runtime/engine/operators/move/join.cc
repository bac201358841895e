// Concat and Reshape: copies of whole runs.
#include <cstring>
#include <iterator>

#include "engine/operator.h"
#include "engine/operators/common/work.h"
#include "engine/operators/move/runs.h"

namespace wb::engine::WB_ISA {
namespace {

Error nothing_to_prepare(PrepareContext& /*context*/) { return Error::Ok; }
Error nothing_to_shape(ShapeContext& /*context*/) { return Error::Ok; }

void reshape_run(const RunContext& context) {
  const TensorView& from = context.operands.inputs[0];
  const TensorView& to = context.operands.outputs[0];
  if (to.data == from.data) return;
  const std::int64_t numel = to.shape.numel();
  const auto size = static_cast<std::int64_t>(element_size(to.dtype));
  constexpr std::int64_t kPiece = 1 << 14;
  split(context.pool, (numel + kPiece - 1) / kPiece, numel, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    const std::int64_t first = begin * kPiece;
    const std::int64_t last = std::min(numel, end * kPiece);
    std::memcpy(to.as<std::byte>() + first * size, from.as<std::byte>() + first * size,
                static_cast<std::size_t>((last - first) * size));
  });
}

// One element of each row.
template <typename T>
void scatter(const T* in, T* out, std::int64_t count, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) out[i * stride] = in[i];
}

void join(const std::byte* in, std::byte* out, std::int64_t rows, std::int64_t run, std::int64_t row,
          std::size_t element) {
  if (run == 1 && element == 4) {
    scatter(reinterpret_cast<const std::uint32_t*>(in), reinterpret_cast<std::uint32_t*>(out), rows, row);
    return;
  }
  const auto size = static_cast<std::int64_t>(element);
  for (std::int64_t r = 0; r < rows; ++r) {
    copy_run(out + r * row * size, in + r * run * size, static_cast<std::size_t>(run * size));
  }
}

void concat_run(const RunContext& context) {
  const TensorView& to = context.operands.outputs[0];
  const int axis = context.node.attributes.axis;
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  for (int d = 0; d < axis; ++d) rows *= to.shape.sizes[d];
  for (int d = axis + 1; d < to.shape.rank; ++d) inner *= to.shape.sizes[d];
  const std::int64_t row = to.shape.sizes[axis] * inner;
  if (rows * row == 0) return;
  const std::size_t element = element_size(to.dtype);
  const auto size = static_cast<std::int64_t>(element);
  const auto copy_rows = [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    std::int64_t at = 0;
    for (std::uint32_t k = 0; k < context.operands.input_count; ++k) {
      const TensorView& from = context.operands.inputs[k];
      const std::int64_t run = from.shape.sizes[axis] * inner;
      if (run == 0) continue;
      join(from.as<std::byte>() + begin * run * size, to.as<std::byte>() + (begin * row + at) * size, end - begin, run,
           row, element);
      at += run;
    }
  };
  split(context.pool, rows, rows * row, copy_rows);
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(move_join, {Op::Concat, nothing_to_prepare, nothing_to_shape, concat_run},
                    {Op::Reshape, nothing_to_prepare, nothing_to_shape, reshape_run})
