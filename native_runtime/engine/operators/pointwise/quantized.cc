#include "engine/operators/pointwise/quantized.h"

#include <algorithm>
#include <cmath>

#include "engine/operators/common/program.h"
#include "engine/operators/common/quantize.h"
#include "engine/operators/common/work.h"
#include "engine/operators/pointwise/lookup.h"

namespace wb::engine::WB_ISA {
namespace {

constexpr int kIntegers = 256;
constexpr std::int64_t kPiece = 4096;
constexpr int kBytes = 4 * kFloats;

bool is_quantized(const TensorView& view) { return view.quantization != nullptr; }

// The program reads nothing but input 0.
bool is_unary(const Node& node) {
  return node.inputs.size() == 1 && std::ranges::all_of(node.post, [](const PointwiseStep& step) {
           return step.operands[0] <= kInputRegister && step.operands[1] <= kInputRegister &&
                  step.operands[2] <= kInputRegister;
         });
}

// fn(in0, in1), or the two the other way round; then a clamp or nothing.
bool is_pair(const Operands& operands, const Node& node) {
  if (operands.input_count != 2 || node.post.empty() || node.post.size() > 2) return false;
  const PointwiseStep& first = node.post[0];
  switch (first.fn) {
    case Fn::Add:
    case Fn::Sub:
    case Fn::Mul:
    case Fn::Maximum:
    case Fn::Minimum: break;
    default: return false;
  }
  const auto input_of = [](std::uint8_t operand) { return operand == 0 ? 0 : operand - kInputRegister; };
  if (input_of(first.operands[0]) + input_of(first.operands[1]) != 1) return false;
  if (node.post.size() == 2 && (node.post[1].fn != Fn::Clamp || node.post[1].operands[0] != 1)) return false;
  const TensorView& out = operands.outputs[0];
  const TensorView& a = operands.inputs[0];
  const TensorView& b = operands.inputs[1];
  return is_quantized(a) && is_quantized(b) && is_quantized(out) && a.dtype == ScalarType::Char &&
         b.dtype == ScalarType::Char && out.dtype == ScalarType::Char;
}

// The integers in the order of their bits as unsigned numbers.
void make_table(const RunContext& context, std::uint8_t* table) {
  std::uint8_t bytes[kIntegers];
  for (int i = 0; i < kIntegers; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  TensorView in = context.operands.inputs[0];
  TensorView out = context.operands.outputs[0];
  in.data = bytes;
  out.data = table;
  alignas(64) float numbers[kIntegers];
  alignas(64) float memory[StepProgram::kMaxTemporaries * kIntegers];
  fill_quantized(in, 0, 0, 1, 1, kIntegers, numbers);
  const float* scalars[StepProgram::kMaxInputs] = {};
  StepProgram program;
  program.build(context.node.post.data(), static_cast<int>(context.node.post.size()), scalars, false);
  alignas(64) float results[kIntegers];
  const Place place{numbers, kIntegers};
  program.evaluate(place, &place, results, kIntegers, 1, kIntegers, memory);
  quantize_run(out, 0, results, kIntegers);
}

struct PairOf {
  Dequantizer x, y;
  Quantizer<std::int8_t> out;
  float low, high;

  template <typename F>
  [[gnu::always_inline]] Ints one(const std::int8_t* a, const std::int8_t* b, F&& f) const {
    return out(at_most(at_least(f(x(load_widened(a)), y(load_widened(b))), low), high));
  }
};

template <typename F>
void run_pair(const PairOf& pair, const std::int8_t* a, const std::int8_t* b, std::int8_t* out, std::int64_t n, F&& f) {
  const auto piece = [&](const std::int8_t* x, const std::int8_t* y, std::int8_t* to) {
    const auto one = [&](int k) { return pair.one(x + k * kFloats, y + k * kFloats, f); };
    store_narrowed(to, one(0), one(1), one(2), one(3));
  };
  std::int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) piece(a + i, b + i, out + i);
  if (i == n) return;
  std::int8_t rest[3][kBytes] = {};
  std::copy_n(a + i, n - i, rest[0]);
  std::copy_n(b + i, n - i, rest[1]);
  piece(rest[0], rest[1], rest[2]);
  std::copy_n(rest[2], n - i, out + i);
}

void run_pair_of(const PairOf& pair, Fn fn, const std::int8_t* a, const std::int8_t* b, std::int8_t* out,
                 std::int64_t n) {
  switch (fn) {
    case Fn::Add: return run_pair(pair, a, b, out, n, [](Floats x, Floats y) { return x + y; });
    case Fn::Sub: return run_pair(pair, a, b, out, n, [](Floats x, Floats y) { return x - y; });
    case Fn::Mul: return run_pair(pair, a, b, out, n, [](Floats x, Floats y) { return x * y; });
    case Fn::Maximum: return run_pair(pair, a, b, out, n, [](Floats x, Floats y) { return x > y ? x : y; });
    default: return run_pair(pair, a, b, out, n, [](Floats x, Floats y) { return x < y ? x : y; });
  }
}

bool run_pairs(const RunContext& context) {
  const Operands& operands = context.operands;
  const TensorView& out = operands.outputs[0];
  if (!(operands.inputs[0].shape == out.shape) || !(operands.inputs[1].shape == out.shape)) return false;
  const PointwiseStep& step = context.node.post[0];
  const bool swapped = step.operands[0] == kInputRegister + 1;
  const TensorView& x = operands.inputs[swapped ? 1 : 0];
  const TensorView& y = operands.inputs[swapped ? 0 : 1];
  const bool clamps = context.node.post.size() == 2;
  const PairOf pair{{x.quantization->scale, x.quantization->zero_point},
                    {y.quantization->scale, y.quantization->zero_point},
                    {out.quantization->scale, out.quantization->zero_point},
                    clamps ? context.node.post[1].a : -INFINITY,
                    clamps ? context.node.post[1].b : INFINITY};
  const std::int64_t numel = out.shape.numel();
  split(context.pool, (numel + kPiece - 1) / kPiece, numel * 2,
        [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
          const std::int64_t first = begin * kPiece;
          run_pair_of(pair, step.fn, x.as<const std::int8_t>() + first, y.as<const std::int8_t>() + first,
                      out.as<std::int8_t>() + first, std::min(numel, end * kPiece) - first);
        });
  return true;
}

}  // namespace

Error QuantizedMethod::prepare(PrepareContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  if (is_pair(context.operands, context.node)) {
    kind_ = Kind::Pair;
  } else if (is_quantized(in) && is_quantized(out) && is_unary(context.node)) {
    auto* table = static_cast<std::uint8_t*>(context.setup.allocate(kIntegers));
    if (table == nullptr) return context.setup.fail(Error::MemoryAllocationFailed, "no memory for a table");
    make_table({.node = context.node, .operands = context.operands, .pool = Pool::instance()}, table);
    table_ = table;
    kind_ = Kind::Table;
  }
  return Error::Ok;
}

bool QuantizedMethod::run(const RunContext& context) const {
  const TensorView& out = context.operands.outputs[0];
  if (kind_ == Kind::None || context.post_count != context.node.post.size() || !is_quantized(out)) return false;
  if (kind_ == Kind::Pair) return run_pairs(context);
  const std::int64_t numel = out.shape.numel();
  const auto* from = context.operands.inputs[0].as<const std::uint8_t>();
  split(context.pool, (numel + kPiece - 1) / kPiece, numel, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    const std::int64_t first = begin * kPiece;
    look_up(table_, from + first, out.as<std::uint8_t>() + first, std::min(numel, end * kPiece) - first);
  });
  return true;
}

void quantize_run(const TensorView& out, std::int64_t at, const float* numbers, std::int64_t n) {
  const Quantization& to = *out.quantization;
  if (out.dtype == ScalarType::Char) {
    quantize_row(numbers, n, to.scale, to.zero_point, out.as<std::int8_t>() + at);
  } else {
    quantize_row(numbers, n, to.scale, to.zero_point, out.as<std::uint8_t>() + at);
  }
}

void fill_quantized(const TensorView& input, std::int64_t at, std::int64_t row, std::int64_t col, std::int64_t rows,
                    std::int64_t cols, float* to) {
  const Quantization& from = *input.quantization;
  const auto fill = [&]<typename Q>(const Q* x) {
    if (col == 1 && row == cols) return dequantize_row(x, rows * cols, from.scale, from.zero_point, to);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* out = to + r * cols;
      if (r > 0 && row == 0) {
        std::copy_n(to, cols, out);
      } else if (col == 1) {
        dequantize_row(x + r * row, cols, from.scale, from.zero_point, out);
      } else if (col == 0) {
        std::fill_n(out, cols, static_cast<float>(x[r * row] - from.zero_point) * from.scale);
      } else {
        for (std::int64_t c = 0; c < cols; ++c) {
          out[c] = static_cast<float>(x[r * row + c * col] - from.zero_point) * from.scale;
        }
      }
    }
  };
  if (input.dtype == ScalarType::Char) {
    fill(input.as<const std::int8_t>() + at);
  } else {
    fill(input.as<const std::uint8_t>() + at);
  }
}

}  // namespace wb::engine::WB_ISA
