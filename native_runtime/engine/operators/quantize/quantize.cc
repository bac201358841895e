// Quantize: numbers as integers, or integers as integers of other parameters.
#include "engine/operators/common/quantize.h"

#include <algorithm>
#include <iterator>

#include "engine/names.h"
#include "engine/operator.h"
#include "engine/operators/common/rows_behind.h"
#include "engine/operators/common/work.h"

namespace wb::engine::WB_ISA {
namespace {

using Kind = Quantization::Kind;

constexpr std::int64_t kPiece = 4096;
constexpr int kBytes = 4 * kFloats;

bool is_byte_type(ScalarType type) { return type == ScalarType::Char || type == ScalarType::Byte; }

Error quantize_prepare(PrepareContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const Kind from = in.quantization == nullptr ? Kind::None : in.quantization->kind;
  const bool reads =
      from == Kind::None ? in.dtype == ScalarType::Float : from == Kind::PerTensor && is_byte_type(in.dtype);
  const bool writes =
      out.quantization != nullptr && is_byte_type(out.dtype) &&
      (out.quantization->kind == Kind::PerTensor || (out.quantization->kind == Kind::PerRow && from == Kind::None));
  if (reads && writes) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "quantization of %s as %s", name_of(in.dtype), name_of(out.dtype));
}

Error quantize_shape(ShapeContext& /*context*/) { return Error::Ok; }

template <typename P, typename Q>
void requantize_row(const P* x, std::int64_t n, const Quantization& from, const Quantization& to, Q* out) {
  const Dequantizer number{from.scale, from.zero_point};
  const Quantizer<Q> q(to.scale, to.zero_point);
  const auto piece = [&](const P* p, Q* r) {
    const auto one = [&](int k) { return q(number(load_widened(p + k * kFloats))); };
    store_narrowed(r, one(0), one(1), one(2), one(3));
  };
  std::int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) piece(x + i, out + i);
  if (i == n) return;
  P rest[kBytes] = {};
  Q bytes[kBytes];
  std::copy_n(x + i, n - i, rest);
  piece(rest, bytes);
  std::copy_n(bytes, n - i, out + i);
}

template <typename Q>
void run_piece(const TensorView& in, const TensorView& out, std::int64_t at, std::int64_t n) {
  const Quantization& to = *out.quantization;
  Q* result = out.as<Q>() + at;
  if (in.quantization == nullptr) {
    quantize_row(in.as<const float>() + at, n, to.scale, to.zero_point, result);
  } else if (in.dtype == ScalarType::Char) {
    requantize_row(in.as<const std::int8_t>() + at, n, *in.quantization, to, result);
  } else {
    requantize_row(in.as<const std::uint8_t>() + at, n, *in.quantization, to, result);
  }
}

void run_rows(const RunContext& context, const TensorView& in, const TensorView& out) {
  const std::int64_t numel = out.shape.numel();
  const std::int64_t columns = out.shape.sizes[out.shape.rank - 1];
  RowQuantization* parameters = rows_behind(out);
  split(context.pool, columns == 0 ? 0 : numel / columns, numel * 2,
        [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
          for (std::int64_t r = begin; r < end; ++r) {
            const float* x = in.as<const float>() + r * columns;
            parameters[r] = find_row(x, columns);
            quantize_row(x, columns, parameters[r].scale, parameters[r].zero_point,
                         out.as<std::int8_t>() + r * columns);
          }
        });
}

void quantize_run(const RunContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  if (out.quantization->kind == Kind::PerRow) return run_rows(context, in, out);
  const std::int64_t numel = out.shape.numel();
  split(context.pool, (numel + kPiece - 1) / kPiece, numel, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    const std::int64_t first = begin * kPiece;
    const std::int64_t count = std::min(numel, end * kPiece) - first;
    if (out.dtype == ScalarType::Char) {
      run_piece<std::int8_t>(in, out, first, count);
    } else {
      run_piece<std::uint8_t>(in, out, first, count);
    }
  });
}

Error dequantize_prepare(PrepareContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const Kind from = in.quantization == nullptr ? Kind::None : in.quantization->kind;
  const bool reads =
      (from == Kind::PerTensor && is_byte_type(in.dtype)) || (from == Kind::PerRow && in.dtype == ScalarType::Char);
  if (reads && in.quantization->bits == 8 && out.dtype == ScalarType::Float) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "numbers of %s as %s", name_of(in.dtype), name_of(out.dtype));
}

void dequantize_run(const RunContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const std::int64_t numel = out.shape.numel();
  const Quantization& from = *in.quantization;
  if (from.kind == Kind::PerRow) {
    const std::int64_t columns = out.shape.sizes[out.shape.rank - 1];
    const RowQuantization* parameters = rows_behind(in);
    split(context.pool, columns == 0 ? 0 : numel / columns, numel,
          [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
            for (std::int64_t r = begin; r < end; ++r) {
              dequantize_row(in.as<const std::int8_t>() + r * columns, columns, parameters[r].scale,
                             parameters[r].zero_point, out.as<float>() + r * columns);
            }
          });
    return;
  }
  split(context.pool, (numel + kPiece - 1) / kPiece, numel, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    const std::int64_t first = begin * kPiece;
    const std::int64_t count = std::min(numel, end * kPiece) - first;
    float* to = out.as<float>() + first;
    if (in.dtype == ScalarType::Char) {
      dequantize_row(in.as<const std::int8_t>() + first, count, from.scale, from.zero_point, to);
    } else {
      dequantize_row(in.as<const std::uint8_t>() + first, count, from.scale, from.zero_point, to);
    }
  });
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(quantize_quantize, {Op::Quantize, quantize_prepare, quantize_shape, quantize_run},
                    {Op::Dequantize, dequantize_prepare, quantize_shape, dequantize_run})
