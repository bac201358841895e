#include "engine/operators/quantized_matmul/constants.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/operators/matmul/constants.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

constexpr std::uint64_t kIntegerFormat = 16;

// Of `count` elements for each column of each matrix.
template <typename T>
Error allocate_columns(Setup& setup, std::int64_t count, T** to) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  *to = static_cast<T*>(setup.allocate(bytes == 0 ? 64 : bytes));
  if (*to == nullptr) return setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of a state", bytes);
  std::fill_n(*to, count, T{0});
  return Error::Ok;
}

// The scale that a bias of integers has of its own, or 0.
float bias_scale(const TensorView& bias, std::int64_t channel) {
  if (bias.quantization == nullptr || !bias.quantization->present()) return 0;
  const Quantization& q = *bias.quantization;
  return q.kind == Quantization::Kind::PerChannel ? q.scales[channel] : q.scale;
}

bool same_scale(float own, float product) { return own == 0 || std::abs(own - product) <= 1e-6F * std::abs(product); }

// Scales and biases in units of the result's scale, if sums and biases (of integers: at most `largest`) can't be many
// of them.
Error prepare_direct(Setup& setup, float result_scale, double largest, Weights* weights) {
  constexpr double kMost = 1 << 30;
  constexpr double kLargestProduct = 128 * 256;
  const std::int64_t count = weights->count * weights->matrix.columns();
  const double sum = static_cast<double>(weights->matrix.k) * kLargestProduct + largest;
  const float inverse = 1.0F / result_scale;
  float* scale = nullptr;
  float* bias = nullptr;
  WB_TRY(allocate_columns(setup, count, &scale));
  WB_TRY(allocate_columns(setup, count, &bias));
  for (std::int64_t i = 0; i < count; ++i) {
    scale[i] = weights->columns.scale[i] * inverse;
    bias[i] = weights->columns.bias[i] * inverse;
    // Also false for NaN.
    if (!(sum * static_cast<double>(scale[i]) + std::abs(static_cast<double>(bias[i])) < kMost)) return Error::Ok;
  }
  weights->columns.direct_scale = scale;
  weights->columns.direct_bias = bias;
  weights->columns.direct_inverse = inverse;
  return Error::Ok;
}

}  // namespace

bool good_bias(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return true;
  const Value& bias = graph.values[node.inputs[2]];
  if (bias.kind != ValueKind::Constant) return false;
  if (bias.dtype == ScalarType::Float) return !is_quantized(bias);
  if (bias.dtype != ScalarType::Int || bias.quantization.zero_point != 0) return false;
  const Quantization::Kind kind = bias.quantization.kind;
  if (kind == Quantization::Kind::PerChannel) return bias.quantization.zero_points == nullptr;
  return kind == Quantization::Kind::PerTensor || kind == Quantization::Kind::None;
}

void Weights::at(std::int64_t i, PackedIntegers* matrix_of, Columns* columns_of) const {
  *matrix_of = matrix;
  *columns_of = columns;
  const std::int64_t step = i * column_step();
  if (matrix_of->data != nullptr) matrix_of->data += i * matrix.bytes();
  columns_of->start += step;
  columns_of->sums += step;
  columns_of->scale += step;
  columns_of->bias += step;
  if (columns_of->direct_scale == nullptr) return;
  columns_of->direct_scale += step;
  columns_of->direct_bias += step;
}

Error pack_weights(Setup& setup, const IntegerSource& source, std::int64_t next, Weights* weights) {
  PackedIntegers& matrix = weights->matrix;
  const std::uint64_t format = dense::FormatKey(kIntegerFormat)
                                   .add(source.source)
                                   .add(matrix.k)
                                   .add(matrix.n)
                                   .add(weights->count)
                                   .add(next)
                                   .add(source.nibbles ? matrix.nibble_zero + 1 : 0)
                                   .value();
  const std::int64_t data_bytes = (weights->count * matrix.bytes() + 63) / 64 * 64;
  const std::int64_t sums = weights->count * matrix.columns();
  const std::size_t bytes =
      static_cast<std::size_t>(data_bytes) + static_cast<std::size_t>(sums) * sizeof(std::int32_t);
  bool ready = false;
  auto* memory =
      static_cast<std::int8_t*>(setup.allocate_packed(source.source.data, format, bytes == 0 ? 64 : bytes, &ready));
  if (memory == nullptr) {
    return setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of packed weights", bytes);
  }
  auto* const sums_of = reinterpret_cast<std::int32_t*>(memory + data_bytes);
  matrix.data = memory;
  weights->columns.sums = sums_of;
  for (std::int64_t i = 0; i < weights->count && !ready; ++i) {
    IntegerSource one = source;
    one.source.data = static_cast<const std::byte*>(source.source.data) + i * next;
    pack_integers(matrix, one, 0, matrix.panels(), memory + i * matrix.bytes(), sums_of + i * matrix.columns());
  }
  return Error::Ok;
}

Error prepare_columns(Setup& setup, const LeftSide& left, const WeightScales& scales, const TensorView* bias,
                      const TensorView& result, Weights* weights) {
  const PackedIntegers& matrix = weights->matrix;
  const std::int64_t columns = matrix.columns();
  double largest = 0;  // of biases
  std::int32_t* start = nullptr;
  float* scale = nullptr;
  float* added = nullptr;
  WB_TRY(allocate_columns(setup, weights->count * columns, &start));
  WB_TRY(allocate_columns(setup, weights->count * columns, &scale));
  WB_TRY(allocate_columns(setup, weights->count * columns, &added));
  for (std::int64_t i = 0; i < weights->count; ++i) {
    for (std::int64_t j = 0; j < matrix.n; ++j) {
      const std::int64_t at = i * columns + j;
      const std::int64_t channel = scales.first + i * scales.next + j;
      scale[at] = left.scale * scales.at(i, j);
      auto first = static_cast<std::uint32_t>(0);  // sums may wrap round on their way
      if (!left.rows && weights->columns.sums != nullptr) {
        first -= static_cast<std::uint32_t>(left.form.zero) * static_cast<std::uint32_t>(weights->columns.sums[at]);
      }
      if (bias != nullptr && bias->dtype == ScalarType::Int) {
        const std::int32_t integer = bias->as<const std::int32_t>()[channel];
        const float own = bias_scale(*bias, channel);
        largest = std::max(largest, std::abs(static_cast<double>(integer)));
        if (!left.rows && same_scale(own, scale[at])) {
          first += static_cast<std::uint32_t>(integer);
        } else {
          added[at] = static_cast<float>(integer) * (own == 0 ? scale[at] : own);
        }
      } else if (bias != nullptr) {
        added[at] = bias->as<const float>()[channel];
      }
      start[at] = static_cast<std::int32_t>(first);
    }
  }
  weights->columns.start = start;
  weights->columns.scale = scale;
  weights->columns.bias = added;
  if (left.rows || !is_quantized(result)) return Error::Ok;
  return prepare_direct(setup, result.quantization->scale, largest, weights);
}

Error prepare_groups(Setup& setup, const Quantization& quantization, const TensorView* bias, Weights* weights) {
  const PackedIntegers& matrix = weights->matrix;
  const std::int64_t columns = matrix.columns();
  const std::int64_t groups = (matrix.k + quantization.group - 1) / quantization.group;
  std::int32_t* start = nullptr;
  float* scale = nullptr;
  float* added = nullptr;
  float* sums = nullptr;
  WB_TRY(allocate_columns(setup, columns, &start));
  WB_TRY(allocate_columns(setup, groups * columns, &scale));
  WB_TRY(allocate_columns(setup, columns, &added));
  WB_TRY(allocate_columns(setup, columns, &sums));
  const std::int64_t depth = matrix.steps() * kDotDepth;
  for (std::int64_t j = 0; j < matrix.n; ++j) {
    double whole = 0;
    for (std::int64_t g = 0; g < groups; ++g) {
      scale[g * columns + j] = quantization.scales[j * groups + g];
      std::int32_t sum = 0;
      const std::int64_t end = std::min((g + 1) * quantization.group, depth);
      for (std::int64_t kk = g * quantization.group; kk < end; ++kk) sum += element_of(matrix, kk, j);
      whole += static_cast<double>(sum) * static_cast<double>(scale[g * columns + j]);
    }
    sums[j] = static_cast<float>(whole);
    if (bias != nullptr) added[j] = bias->as<const float>()[j];
  }
  weights->columns.start = start;
  weights->columns.scale = scale;
  weights->columns.bias = added;
  weights->columns.weight_sums = sums;
  weights->columns.group = quantization.group;
  return Error::Ok;
}

Finish make_finish(const TensorView& result, Epilogue& epilogue) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Finish finish;
  float low = -kInfinity;
  float high = kInfinity;
  (void)epilogue.take_clamp(&low, &high);
  finish.numbers.low = low;
  finish.numbers.high = high;
  Store& store = finish.store;
  if (!epilogue.empty()) {
    finish.rest = &epilogue;
    low = -kInfinity;
    high = kInfinity;
  }
  store.low = low;
  store.high = high;
  if (!is_quantized(result)) return finish;
  const Quantization& q = *result.quantization;
  store.bytes = true;
  store.is_signed = result.dtype == ScalarType::Char;
  store.inverse = 1.0F / q.scale;
  store.zero = q.zero_point;
  // The order of rounding and clamping does not matter where the ends are rounded alike.
  const auto least = static_cast<float>((store.is_signed ? -128 : 0) - q.zero_point);
  store.low = std::clamp(std::nearbyint(low * store.inverse), least, least + 255);
  store.high = std::clamp(std::nearbyint(high * store.inverse), least, least + 255);
  return finish;
}

}  // namespace wb::engine::WB_ISA::quantized
