// Softmax along one dimension. Rows are passed three times: largest element, exponentials and their sum, quotients.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/names.h"
#include "engine/operators/common/epilogue.h"
#include "engine/operators/common/math.h"
#include "engine/operators/common/work.h"
#include "kernels/simd.h"

namespace wb::engine::WB_ISA {
namespace {

constexpr float kLowest = -__builtin_huge_valf();

struct Axis {
  std::int64_t outer = 1, size = 1, inner = 1;

  Axis(const Shape& shape, int axis) : size(shape.sizes[axis]) {
    for (int d = 0; d < axis; ++d) outer *= shape.sizes[d];
    for (int d = axis + 1; d < shape.rank; ++d) inner *= shape.sizes[d];
  }
};

[[gnu::always_inline]] inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }

// ---- along rows

float largest_in(const float* p, std::int64_t n) {
  Floats best[4] = {splat(kLowest), splat(kLowest), splat(kLowest), splat(kLowest)};
  std::int64_t i = 0;
  for (; i + 4 * kFloats <= n; i += 4 * kFloats) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) best[v] = larger(load(p + i + v * kFloats), best[v]);
  }
  for (; i + kFloats <= n; i += kFloats) best[0] = larger(load(p + i), best[0]);
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    best[1] = larger(first_lanes(load_first(p + i, rest), splat(kLowest), rest), best[1]);
  }
  return largest_of(larger(larger(best[0], best[1]), larger(best[2], best[3])));
}

// Sum of exp(p[i] - shift), which go to out if kStore.
template <bool kStore>
float sum_exponentials(const float* p, float* out, std::int64_t n, float shift) {
  Floats sums[2] = {};
  std::int64_t i = 0;
  for (; i + 2 * kFloats <= n; i += 2 * kFloats) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const Floats e = math::exp_negative(load(p + i + v * kFloats) - shift);
      sums[v] += e;
      if (kStore) store(out + i + v * kFloats, e);
    }
  }
  for (; i < n; i += kFloats) {
    const int rest = static_cast<int>(std::min<std::int64_t>(kFloats, n - i));
    const Floats x = rest == kFloats ? load(p + i) : first_lanes(load_first(p + i, rest), splat(kLowest), rest);
    const Floats e = math::exp_negative(x - shift);
    sums[0] += rest == kFloats ? e : first_lanes(e, Floats{}, rest);
    if (kStore && rest == kFloats) store(out + i, e);
    if (kStore && rest < kFloats) store_first(out + i, e, rest);
  }
  return sum_of(sums[0] + sums[1]);
}

template <typename F>
[[gnu::always_inline]] inline void map_row(const float* p, float* out, std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) store(out + i, f(load(p + i)));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    store_first(out + i, f(load_first(p + i, rest)), rest);
  }
}

// A few rows together: the exponentials of one are computed while the largest element, or the sum, of another is
// waited for.
constexpr std::int64_t kTogether = 4;

void softmax_rows(const float* p, float* out, std::int64_t rows, std::int64_t n, bool log) {
  float shifts[kTogether];
  float sums[kTogether];
  for (std::int64_t r = 0; r < rows; ++r) shifts[r] = largest_in(p + r * n, n);
  if (log) {
    for (std::int64_t r = 0; r < rows; ++r) sums[r] = sum_exponentials<false>(p + r * n, out, n, shifts[r]);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float shift = shifts[r];
      const float rest = std::log(sums[r]);
      map_row(p + r * n, out + r * n, n, [=](Floats x) { return (x - shift) - rest; });
    }
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) sums[r] = sum_exponentials<true>(p + r * n, out + r * n, n, shifts[r]);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float factor = 1.0F / sums[r];
    map_row(out + r * n, out + r * n, n, [=](Floats x) { return x * factor; });
  }
}

// ---- along columns: vectors of neighbouring ones

template <int kVectors, bool kWhole>
struct Columns {
  std::int64_t stride;
  int last;  // elements of the last vector

  [[gnu::always_inline]] Floats get(const float* p, std::int64_t i, int v) const {
    const float* at = p + i * stride + v * kFloats;
    return kWhole || v + 1 < kVectors ? load(at) : load_first(at, last);
  }
  [[gnu::always_inline]] void put(float* p, std::int64_t i, int v, Floats x) const {
    float* at = p + i * stride + v * kFloats;
    if (kWhole || v + 1 < kVectors) {
      store(at, x);
    } else {
      store_first(at, x, last);
    }
  }

  void softmax(const float* p, float* out, std::int64_t n, bool log) const {
    Floats shift[kVectors];
    Floats sum[kVectors] = {};
    for (int v = 0; v < kVectors; ++v) shift[v] = splat(kLowest);
    for (std::int64_t i = 0; i < n; ++i) {
      for (int v = 0; v < kVectors; ++v) shift[v] = larger(get(p, i, v), shift[v]);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        const Floats e = math::exp_negative(get(p, i, v) - shift[v]);
        sum[v] += e;
        if (!log) put(out, i, v, e);
      }
    }
    for (int v = 0; v < kVectors; ++v) sum[v] = log ? math::log(sum[v]) : 1.0F / sum[v];
    for (std::int64_t i = 0; i < n; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        put(out, i, v, log ? (get(p, i, v) - shift[v]) - sum[v] : get(out, i, v) * sum[v]);
      }
    }
  }
};

void softmax_columns(const float* p, float* out, const Axis& axis, int cols, bool log) {
  if (cols == 4 * kFloats) {
    Columns<4, true>{axis.inner, kFloats}.softmax(p, out, axis.size, log);
    return;
  }
  for (int c = 0; c < cols; c += kFloats) {
    const int last = std::min(kFloats, cols - c);
    if (last == kFloats) {
      Columns<1, true>{axis.inner, last}.softmax(p + c, out + c, axis.size, log);
    } else {
      Columns<1, false>{axis.inner, last}.softmax(p + c, out + c, axis.size, log);
    }
  }
}

Error softmax_prepare(PrepareContext& context) {
  const ScalarType in = context.operands.inputs[0].dtype;
  if (in == ScalarType::Float && context.operands.outputs[0].dtype == ScalarType::Float) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "softmax of %s, expected float32", name_of(in));
}

Error softmax_shape(ShapeContext& /*context*/) { return Error::Ok; }

void softmax_run(const RunContext& context) {
  const Axis axis(context.operands.inputs[0].shape, context.node.attributes.axis);
  const bool log = context.node.attributes.log;
  const auto* in = context.operands.inputs[0].as<const float>();
  auto* out = context.operands.outputs[0].as<float>();
  const Epilogue epilogue(context);
  const std::int64_t work = axis.outer * axis.size * axis.inner * 8;
  if (work == 0) return;
  if (axis.inner == 1) {
    // Long rows leave no room in the cache for each other.
    const std::int64_t together = axis.size <= 2048 ? kTogether : 1;
    split(context.pool, axis.outer, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
      for (std::int64_t o = begin; o < end; o += together) {
        const std::int64_t rows = std::min(together, end - o);
        softmax_rows(in + o * axis.size, out + o * axis.size, rows, axis.size, log);
        if (!epilogue.empty()) epilogue.apply(out + o * axis.size, axis.size, o, rows, 0, axis.size);
      }
    });
    return;
  }
  constexpr std::int64_t kColumns = 4 * kFloats;
  const std::int64_t blocks = (axis.inner + kColumns - 1) / kColumns;
  split(context.pool, axis.outer * blocks, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t col = i % blocks * kColumns;
      const std::int64_t first = i / blocks * axis.size * axis.inner + col;
      softmax_columns(in + first, out + first, axis, static_cast<int>(std::min(kColumns, axis.inner - col)), log);
    }
  });
  if (!epilogue.empty()) epilogue.apply_all(out);
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(softmax_softmax, {Op::Softmax, softmax_prepare, softmax_shape, softmax_run, epilogue_fuses})
