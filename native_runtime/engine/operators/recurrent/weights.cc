#include "engine/operators/recurrent/weights.h"

#include <algorithm>
#include <cstring>

#include "engine/operators/matmul/constants.h"
#include "engine/operators/matmul/transpose.h"

namespace wb::engine::WB_ISA::recurrent {
namespace {

constexpr std::uint64_t kInputFormat = 16, kRecurrentFormat = 17;

// to[k step + r] = row r's element k for kWidth rows and `count` elements of each; rows past `rows` are zeros.
void transpose_rows(const TensorView& weight, std::int64_t first_row, std::int64_t rows, float* to, std::int64_t step) {
  const std::int64_t count = weight.shape.sizes[1];
  const auto element = static_cast<std::int64_t>(element_size(weight.dtype));
  const auto at = [&](std::int64_t r, std::int64_t k) {
    return static_cast<const std::byte*>(weight.data) + ((first_row + r) * count + k) * element;
  };
  for (std::int64_t k = 0; k < count; k += kWidth) {
    const std::int64_t left = std::min<std::int64_t>(kWidth, count - k);
    dense::Vector square[kWidth];
    for (std::int64_t r = 0; r < kWidth; ++r) {
      alignas(64) float line[kWidth] = {};
      if (r < rows) dense::convert_floats(at(r, k), weight.dtype, left, line);
      square[r] = simd::load(line);
    }
    dense::transpose(square);
    for (std::int64_t i = 0; i < left; ++i) simd::store(to + (k + i) * step, square[i]);
  }
}

Error pack_input(Setup& setup, const TensorView& weight, Weights* weights) {
  const std::int64_t vectors = weights->groups() * weights->gates;
  const std::int64_t panels = (vectors + 1) / 2;
  const std::size_t bytes =
      std::max<std::size_t>(64, static_cast<std::size_t>(panels * weights->inputs) * 2 * kWidth * sizeof(float));
  bool ready = false;
  const std::uint64_t format =
      dense::FormatKey(kInputFormat).add(weights->gates).add(weights->hidden).add(weights->inputs).value();
  auto* packed = static_cast<float*>(setup.allocate_packed(weight.data, format, bytes, &ready));
  if (packed == nullptr) return Error::MemoryAllocationFailed;
  weights->input = packed;
  if (ready) return Error::Ok;
  if (vectors % 2 != 0) {
    const std::int64_t panel = weights->inputs * 2 * kWidth;
    std::memset(packed + (panels - 1) * panel, 0, static_cast<std::size_t>(panel) * sizeof(float));
  }
  for (std::int64_t vector = 0; vector < vectors; ++vector) {
    const std::int64_t unit = vector / weights->gates * kWidth;
    const std::int64_t gate = vector % weights->gates;
    float* const to = packed + vector / 2 * weights->inputs * 2 * kWidth + vector % 2 * kWidth;
    transpose_rows(weight, gate * weights->hidden + unit, weights->hidden - unit, to, std::int64_t{2} * kWidth);
  }
  return Error::Ok;
}

Error pack_recurrent(Setup& setup, const TensorView& weight, Weights* weights) {
  const std::size_t bytes = static_cast<std::size_t>(weights->columns() * weights->hidden) * sizeof(float);
  bool ready = false;
  const std::uint64_t format = dense::FormatKey(kRecurrentFormat).add(weights->gates).add(weights->hidden).value();
  auto* packed = static_cast<float*>(setup.allocate_packed(weight.data, format, bytes, &ready));
  if (packed == nullptr) return Error::MemoryAllocationFailed;
  weights->recurrent = packed;
  if (ready) return Error::Ok;
  const std::int64_t groups = weights->groups();
  const std::int64_t group_columns = std::int64_t{weights->gates} * kWidth;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t first = group / 2 * 2;
    const std::int64_t step = first + 1 < groups ? 2 * group_columns : group_columns;
    float* const to = packed + first * group_columns * weights->hidden + (group - first) * group_columns;
    for (std::int64_t gate = 0; gate < weights->gates; ++gate) {
      const std::int64_t unit = group * kWidth;
      transpose_rows(weight, gate * weights->hidden + unit, weights->hidden - unit, to + gate * kWidth, step);
    }
  }
  return Error::Ok;
}

// bias[column] += vector, but not of the new gate of a GRU if `without_new`.
void add_bias(const TensorView& vector, const Weights& weights, bool without_new, float* bias) {
  if (!vector.present) return;
  for (std::int64_t gate = 0; gate < weights.gates; ++gate) {
    if (without_new && gate == 2) continue;
    for (std::int64_t unit = 0; unit < weights.hidden; ++unit) {
      const auto element = static_cast<std::int64_t>(element_size(vector.dtype));
      float value = 0;
      dense::convert_floats(static_cast<const std::byte*>(vector.data) + (gate * weights.hidden + unit) * element,
                            vector.dtype, 1, &value);
      bias[(unit / kWidth * weights.gates + gate) * kWidth + unit % kWidth] += value;
    }
  }
}

Error pack_biases(Setup& setup, const TensorView& input, const TensorView& recurrent, Weights* weights) {
  const std::int64_t columns = weights->columns();
  const std::int64_t units = weights->groups() * kWidth;
  const std::size_t bytes = static_cast<std::size_t>(columns + units + 2 * kWidth) * sizeof(float);
  auto* bias = static_cast<float*>(setup.allocate(bytes));
  if (bias == nullptr) return Error::MemoryAllocationFailed;
  std::memset(bias, 0, bytes);
  const bool gru = weights->gates == 3;
  add_bias(input, *weights, false, bias);
  add_bias(recurrent, *weights, gru, bias);
  weights->bias = bias;
  weights->recurrent_bias = bias + columns;
  if (gru && recurrent.present) {
    const auto element = static_cast<std::int64_t>(element_size(recurrent.dtype));
    dense::convert_floats(static_cast<const std::byte*>(recurrent.data) + 2 * weights->hidden * element,
                          recurrent.dtype, weights->hidden, bias + columns);
  }
  return Error::Ok;
}

}  // namespace

Error pack(Setup& setup, const TensorView* four, Weights* weights) {
  WB_TRY(pack_input(setup, four[0], weights));
  WB_TRY(pack_recurrent(setup, four[1], weights));
  return pack_biases(setup, four[2], four[3], weights);
}

}  // namespace wb::engine::WB_ISA::recurrent
