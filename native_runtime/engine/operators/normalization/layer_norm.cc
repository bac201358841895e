// LayerNorm and RmsNorm: rows of the last dimensions. The variance is summed from deviations, after the mean.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/names.h"
#include "engine/operators/common/epilogue.h"
#include "engine/operators/common/work.h"
#include "engine/operators/normalization/rows.h"

namespace wb::engine::WB_ISA {
namespace {

struct Rows {
  const float* in;
  float* out;
  const float* weight;  // null: 1
  const float* bias;    // null: 0
  std::int64_t count, size;
  float eps;

  explicit Rows(const RunContext& context) {
    const Operands& operands = context.operands;
    const auto optional = [&](std::uint32_t k) {
      return k < operands.input_count && operands.inputs[k].present ? operands.inputs[k].as<const float>() : nullptr;
    };
    const Shape& shape = operands.inputs[0].shape;
    in = operands.inputs[0].as<const float>();
    out = operands.outputs[0].as<float>();
    weight = optional(1);
    bias = optional(2);
    size = 1;
    for (int d = shape.rank - context.node.attributes.axis; d < shape.rank; ++d) size *= shape.sizes[d];
    count = size == 0 ? 0 : shape.numel() / size;
    eps = static_cast<float>(context.node.attributes.eps);
  }
};

// out = (x - mean) factor weight + bias
template <bool kWeight, bool kBias>
void scale_row(const Rows& rows, const float* p, float* out, float mean, float factor) {
  const auto scaled = [&](Floats x, auto get, std::int64_t i) {
    Floats y = (x - mean) * factor;
    if (kWeight) y = kBias ? fma(y, get(rows.weight + i), get(rows.bias + i)) : y * get(rows.weight + i);
    if (!kWeight && kBias) y += get(rows.bias + i);
    return y;
  };
  std::int64_t i = 0;
  for (; i + kFloats <= rows.size; i += kFloats) {
    store(out + i, scaled(load(p + i), [](const float* q) { return load(q); }, i));
  }
  if (i < rows.size) {
    const int rest = static_cast<int>(rows.size - i);
    store_first(out + i,
                scaled(load_first(p + i, rest), [rest](const float* q) { return load_first(q, rest); }, i), rest);
  }
}

// A few rows together: the sums of one are added up while those of another are waited for.
constexpr std::int64_t kTogether = 4;

template <bool kCenter, bool kWeight, bool kBias>
void norm_rows(const Rows& rows, std::int64_t first, std::int64_t count) {
  const auto size = static_cast<float>(rows.size);
  const float* p = rows.in + first * rows.size;
  float means[kTogether] = {};
  float factors[kTogether];
  for (std::int64_t r = 0; kCenter && r < count; ++r) {
    means[r] = sum_row(p + r * rows.size, rows.size, [](Floats x) { return x; }) / size;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const float mean = means[r];
    factors[r] = sum_row(p + r * rows.size, rows.size, [mean](Floats x) {
      const Floats d = kCenter ? x - mean : x;
      return d * d;
    });
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const float factor = 1.0F / std::sqrt(factors[r] / size + rows.eps);
    scale_row<kWeight, kBias>(rows, p + r * rows.size, rows.out + (first + r) * rows.size, means[r], factor);
  }
}

template <bool kCenter>
auto row_function(const Rows& rows) {
  if (rows.weight != nullptr)
    return rows.bias != nullptr ? norm_rows<kCenter, true, true> : norm_rows<kCenter, true, false>;
  return rows.bias != nullptr ? norm_rows<kCenter, false, true> : norm_rows<kCenter, false, false>;
}

Error norm_prepare(PrepareContext& context) {
  for (std::uint32_t k = 0; k < context.operands.input_count; ++k) {
    const TensorView& input = context.operands.inputs[k];
    if (!input.present || input.dtype == ScalarType::Float) continue;
    return context.setup.fail(Error::NotSupported, "normalization: input %u is of %s, expected float32", k,
                              name_of(input.dtype));
  }
  return Error::Ok;
}

Error norm_shape(ShapeContext& /*context*/) { return Error::Ok; }

void norm_run(const RunContext& context) {
  const Rows rows(context);
  const auto function = context.node.op == Op::LayerNorm ? row_function<true>(rows) : row_function<false>(rows);
  const Epilogue epilogue(context);
  const Shape& shape = context.operands.outputs[0].shape;
  const std::int64_t columns = shape.rank == 0 ? 1 : shape.sizes[shape.rank - 1];
  split(context.pool, rows.count, rows.count * rows.size * 3, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; r += kTogether) {
      const std::int64_t n = std::min(kTogether, end - r);
      function(rows, r, n);
      if (epilogue.empty()) continue;
      const std::int64_t lines = rows.size / columns;
      epilogue.apply(rows.out + r * rows.size, columns, r * lines, n * lines, 0, columns);
    }
  });
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(normalization_layer_norm, {Op::LayerNorm, norm_prepare, norm_shape, norm_run, epilogue_fuses},
                    {Op::RmsNorm, norm_prepare, norm_shape, norm_run, epilogue_fuses})
