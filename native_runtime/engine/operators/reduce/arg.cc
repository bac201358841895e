// The place of the largest or smallest element along an axis: the first of equal ones; NaN counts as the largest (and
// as the smallest).
#include <algorithm>
#include <iterator>

#include "engine/names.h"
#include "engine/operator.h"
#include "engine/operators/common/lanes.h"
#include "engine/operators/common/work.h"
#include "engine/operators/reduce/folds.h"
#include "kernels/common/convert.h"

namespace wb::engine::WB_ISA {
namespace {

using kernels::WB_ISA::Lane;

struct Axis {
  std::int64_t outer = 1, size = 1, inner = 1;

  Axis(const Shape& shape, int axis) : size(shape.sizes[axis]) {
    for (int d = 0; d < axis; ++d) outer *= shape.sizes[d];
    for (int d = axis + 1; d < shape.rank; ++d) inner *= shape.sizes[d];
  }
};

Error arg_prepare(PrepareContext& context) {
  const ScalarType in = context.operands.inputs[0].dtype;
  const ScalarType out = context.operands.outputs[0].dtype;
  const bool known = kernels::WB_ISA::is_computable(in) && in != ScalarType::Double;
  if (known && out == ScalarType::Long) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "the place of the largest of %s as %s", name_of(in), name_of(out));
}

Error arg_shape(ShapeContext& /*context*/) { return Error::Ok; }

// Of contiguous floats: the value first, then where it stands.
template <typename Fold>
std::int64_t find_in_run(const float* p, std::int64_t n) {
  const Fold fold;
  const float best = fold_lanes(fold, fold_run(fold, p, n));
  std::int64_t i = 0;
  if (best != best) {
    while (i < n && p[i] == p[i]) ++i;
  } else {
    while (i < n && p[i] != best) ++i;
  }
  return i;
}

// Of kFloats columns (the first `cols` of which exist), `stride` elements from row to row.
template <bool kLargest>
void find_in_columns(const float* p, std::int64_t n, std::int64_t stride, int cols, std::int64_t* out) {
  Floats best = load_first(p, cols);
  Ints where{};
  for (std::int64_t i = 1; i < n; ++i) {
    const Floats x = cols == kFloats ? load(p + i * stride) : load_first(p + i * stride, cols);
    const Ints beyond = kLargest ? x > best : x < best;
    const Ints better = (beyond | (x != x)) & (best == best);
    best = better ? x : best;
    where = better ? Ints{} + static_cast<std::int32_t>(i) : where;
  }
  for (int c = 0; c < cols; ++c) out[c] = where[c];
}

template <bool kLargest>
void run_floats(const RunContext& context, const Axis& axis) {
  const auto* in = context.operands.inputs[0].as<const float>();
  auto* out = context.operands.outputs[0].as<std::int64_t>();
  using Fold = std::conditional_t<kLargest, MaxFold, MinFold>;
  const std::int64_t work = axis.outer * axis.size * axis.inner;
  if (axis.inner == 1) {
    split(context.pool, axis.outer, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
      for (std::int64_t o = begin; o < end; ++o) out[o] = find_in_run<Fold>(in + o * axis.size, axis.size);
    });
    return;
  }
  const std::int64_t blocks = (axis.inner + kFloats - 1) / kFloats;
  split(context.pool, axis.outer * blocks, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t col = i % blocks * kFloats;
      const auto cols = static_cast<int>(std::min<std::int64_t>(kFloats, axis.inner - col));
      const float* p = in + i / blocks * axis.size * axis.inner + col;
      find_in_columns<kLargest>(p, axis.size, axis.inner, cols, out + i / blocks * axis.inner + col);
    }
  });
}

void run_others(const RunContext& context, const Axis& axis) {
  const TensorView& in = context.operands.inputs[0];
  auto* out = context.operands.outputs[0].as<std::int64_t>();
  const bool largest = context.node.attributes.largest;
  const bool half = kernels::WB_ISA::is_floating(in.dtype);
  const auto load = kernels::WB_ISA::find_load(in.dtype, half ? Lane::F32 : Lane::I64);
  const auto size = static_cast<std::int64_t>(element_size(in.dtype));
  const auto find = [&]<typename T>(T best, const std::byte* p) {
    std::int64_t where = 0;
    load(&best, p, 1, 1);
    for (std::int64_t i = 1; i < axis.size; ++i) {
      T x{};
      load(&x, p + i * axis.inner * size, 1, 1);
      if (best == best && ((largest ? x > best : x < best) || x != x)) {
        best = x;
        where = i;
      }
    }
    return where;
  };
  for (std::int64_t i = 0; i < axis.outer * axis.inner; ++i) {
    const std::int64_t first = i / axis.inner * axis.size * axis.inner + i % axis.inner;
    const std::byte* p = in.as<const std::byte>() + first * size;
    out[i] = half ? find(float{}, p) : find(std::int64_t{}, p);
  }
}

void arg_run(const RunContext& context) {
  const Axis axis(context.operands.inputs[0].shape, context.node.attributes.axis);
  if (axis.outer * axis.size * axis.inner == 0) return;
  // Places are counted in 32 bits in the vectors.
  if (context.operands.inputs[0].dtype != ScalarType::Float || axis.size > INT32_MAX) {
    run_others(context, axis);
  } else if (context.node.attributes.largest) {
    run_floats<true>(context, axis);
  } else {
    run_floats<false>(context, axis);
  }
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(reduce_arg, {Op::ArgReduce, arg_prepare, arg_shape, arg_run})
