// The arithmetic of the demo backends: plain loops, written to be read.
#include <cmath>
#include <cstring>

#include "backends/demo/blob.h"

namespace wb::demo {
namespace {

// Strides of `value` seen in the shape of `result`: 0 where it is broadcast.
void broadcast_strides(const Value& value, const Value& result, std::int64_t* strides) {
  std::int64_t step = 1;
  for (int back = 1; back <= result.rank; ++back) {
    const int d = value.rank - back;
    strides[result.rank - back] = d < 0 || value.sizes[d] == 1 ? 0 : step;
    if (d >= 0) step *= value.sizes[d];
  }
}

// result = f(a, b), with broadcasting: an odometer over the outer dimensions, a loop over the innermost.
template <typename F>
void binary(const Value& a, const Value& b, const Value& result, F f) {
  if (result.numel == 0) return;
  if (a.numel == result.numel && b.numel == result.numel) {
    for (std::int64_t i = 0; i < result.numel; ++i) result.data[i] = f(a.data[i], b.data[i]);
    return;
  }
  std::int64_t stride_a[kMaxBlobRank] = {};
  std::int64_t stride_b[kMaxBlobRank] = {};
  broadcast_strides(a, result, stride_a);
  broadcast_strides(b, result, stride_b);
  const int last = result.rank - 1;
  const std::int64_t inner = result.sizes[last];
  std::int32_t position[kMaxBlobRank] = {};
  const float* x = a.data;
  const float* y = b.data;
  for (float *out = result.data, *end = out + result.numel; out != end; out += inner) {
    for (std::int64_t i = 0; i < inner; ++i) out[i] = f(x[i * stride_a[last]], y[i * stride_b[last]]);
    for (int d = last - 1; d >= 0; --d) {
      x += stride_a[d];
      y += stride_b[d];
      if (++position[d] < result.sizes[d]) break;
      x -= stride_a[d] * result.sizes[d];
      y -= stride_b[d] * result.sizes[d];
      position[d] = 0;
    }
  }
}

// result[m, n] = sum_k a[m, k] * b[k, n]
void mm(const Value& a, const Value& b, const Value& result) {
  const std::int64_t rows = a.sizes[0];
  const std::int64_t depth = a.sizes[1];
  const std::int64_t columns = b.sizes[1];
  for (std::int64_t m = 0; m < rows; ++m) {
    float* out = result.data + m * columns;
    for (std::int64_t n = 0; n < columns; ++n) out[n] = 0.0F;
    for (std::int64_t k = 0; k < depth; ++k) {
      const float factor = a.data[m * depth + k];
      const float* row = b.data + k * columns;
      for (std::int64_t n = 0; n < columns; ++n) out[n] += factor * row[n];
    }
  }
}

// result[..., n] = bias[n] + sum_k x[..., k] * weight[n, k]
void linear(const Value& x, const Value& weight, const Value* bias, const Value& result) {
  const std::int64_t outputs = weight.sizes[0];
  const std::int64_t depth = weight.sizes[1];
  const std::int64_t rows = outputs == 0 ? 0 : result.numel / outputs;
  for (std::int64_t m = 0; m < rows; ++m) {
    for (std::int64_t n = 0; n < outputs; ++n) {
      float sum = bias == nullptr ? 0.0F : bias->data[n];
      for (std::int64_t k = 0; k < depth; ++k) sum += x.data[m * depth + k] * weight.data[n * depth + k];
      result.data[m * outputs + n] = sum;
    }
  }
}

}  // namespace

void run(const Plan& plan, const BlobInstruction& instruction) {
  const Value& a = plan.values[instruction.operands[0]];
  const Value& b = plan.values[instruction.operand_count > 1 ? instruction.operands[1] : instruction.operands[0]];
  const Value& result = plan.values[instruction.result];
  switch (instruction.opcode) {
    case Opcode::Copy:
      if (a.numel != 0) std::memmove(result.data, a.data, static_cast<std::size_t>(a.numel) * sizeof(float));
      return;
    case Opcode::Sin:
      for (std::int64_t i = 0; i < a.numel; ++i) result.data[i] = std::sin(a.data[i]);
      return;
    case Opcode::Add: {
      const float alpha = instruction.alpha;
      binary(a, b, result, [alpha](float x, float y) { return x + alpha * y; });
      return;
    }
    case Opcode::Mul: binary(a, b, result, [](float x, float y) { return x * y; }); return;
    case Opcode::Mm: mm(a, b, result); return;
    case Opcode::Linear:
      linear(a, b, instruction.operand_count == 3 ? &plan.values[instruction.operands[2]] : nullptr, result);
      return;
  }
}

}  // namespace wb::demo
