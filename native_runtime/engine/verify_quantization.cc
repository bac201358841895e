// Which quantizations a value may have, and which nodes may read or write it.
#include <cmath>

#include "engine/names.h"
#include "engine/verify.h"

namespace wb::engine {
namespace {

using Kind = Quantization::Kind;

struct Range {
  std::int32_t low, high;
};

// Integers that stand for numbers with a zero point among them; the zero point of a bias is 0.
Range zero_points_of(const Value& value) {
  if (value.quantization.bits == 4) return {0, 15};
  if (value.dtype == ScalarType::Byte) return {0, 255};
  if (value.dtype == ScalarType::Char) return {-128, 127};
  return {0, 0};
}

class Check {
 public:
  Check(const Reporter& report, std::size_t index, const Value& value)
      : report_(report), index_(index), value_(value), q_(value.quantization) {}

  Error run() const {
    if (q_.kind > Kind::PerRow || (q_.bits != 8 && q_.bits != 4)) {
      return report_.fail(Error::InvalidProgram, "value %zu: quantization of kind %u with %u bits", index_,
                          static_cast<unsigned>(q_.kind), q_.bits);
    }
    if (!q_.present()) {
      if (q_.bits == 8) return Error::Ok;
      return report_.fail(Error::InvalidProgram, "value %zu has %u bits and no quantization", index_, q_.bits);
    }
    const bool bytes = value_.dtype == ScalarType::Char || value_.dtype == ScalarType::Byte;
    if (!bytes && (value_.dtype != ScalarType::Int || q_.bits == 4)) {
      return report_.fail(Error::InvalidProgram, "value %zu: expected quantized int8, uint8 or int32, found %s", index_,
                          name_of(value_.dtype));
    }
    const bool constant = value_.kind == ValueKind::Constant;
    if (!constant && (q_.bits == 4 || q_.kind == Kind::PerChannel || q_.kind == Kind::PerGroup)) {
      return report_.fail(Error::InvalidProgram, "value %zu: expected a constant of %u bits with so many scales",
                          index_, q_.bits);
    }
    if (q_.bits == 4 && value_.shape.rank == 0) {
      return report_.fail(Error::InvalidProgram, "value %zu: one number of 4 bits", index_);
    }
    switch (q_.kind) {
      case Kind::PerTensor: return per_tensor();
      case Kind::PerChannel: return per_channel();
      case Kind::PerGroup: return per_group();
      case Kind::PerRow: return per_row();
      case Kind::None: break;
    }
    return Error::Ok;
  }

 private:
  Error check_zero_point(std::int32_t zero_point) const {
    const Range range = zero_points_of(value_);
    if (zero_point >= range.low && zero_point <= range.high) return Error::Ok;
    return report_.fail(Error::InvalidProgram, "value %zu: zero point %d: expected %d to %d", index_, zero_point,
                        range.low, range.high);
  }

  // What is divided by must have a reciprocal.
  Error check_scale(float scale, bool divides) const {
    if (scale > 0 && std::isfinite(scale) && (!divides || std::isnormal(scale))) return Error::Ok;
    return report_.fail(Error::InvalidProgram, "value %zu: scale %g: expected a positive, finite number", index_,
                        static_cast<double>(scale));
  }

  Error per_tensor() const {
    WB_TRY(check_scale(q_.scale, value_.kind != ValueKind::Constant));
    return check_zero_point(q_.zero_point);
  }

  Error check_scales(std::int64_t count) const {
    if (count != 0 && q_.scales == nullptr) {
      return report_.fail(Error::InvalidProgram, "value %zu: its %lld scales are missing", index_,
                          static_cast<long long>(count));
    }
    for (std::int64_t i = 0; i < count; ++i) WB_TRY(check_scale(q_.scales[i], false));
    return Error::Ok;
  }

  Error per_channel() const {
    if (q_.axis < 0 || q_.axis >= value_.shape.rank) {
      return report_.fail(Error::InvalidProgram, "value %zu: channels along dimension %d of sizes %s", index_, q_.axis,
                          ShapeText(value_.shape).text);
    }
    const std::int64_t count = value_.shape.sizes[q_.axis];
    WB_TRY(check_scales(count));
    if (q_.zero_points == nullptr) return check_zero_point(q_.zero_point);
    for (std::int64_t i = 0; i < count; ++i) WB_TRY(check_zero_point(q_.zero_points[i]));
    return Error::Ok;
  }

  Error per_group() const {
    if (value_.shape.rank != 2 || q_.group < 1 || value_.dtype == ScalarType::Int) {
      return report_.fail(Error::InvalidProgram, "value %zu: groups of %lld in sizes %s: expected [n, k]", index_,
                          static_cast<long long>(q_.group), ShapeText(value_.shape).text);
    }
    const std::int64_t columns = value_.shape.sizes[1];
    const std::int64_t groups = columns / q_.group + (columns % q_.group != 0 ? 1 : 0);
    WB_TRY(check_scales(value_.shape.sizes[0] * groups));
    return check_zero_point(q_.zero_point);
  }

  Error per_row() const {
    if (value_.kind == ValueKind::Temporary && value_.dtype == ScalarType::Char && value_.shape.rank > 0) {
      return Error::Ok;
    }
    return report_.fail(Error::InvalidProgram,
                        "value %zu: quantized by rows: expected an int8 value between two nodes, found %s %s", index_,
                        name_of(value_.dtype), ShapeText(value_.shape).text);
  }

  const Reporter& report_;
  std::size_t index_;
  const Value& value_;
  const Quantization& q_;
};

}  // namespace

Error verify_quantization(const Reporter& report, std::size_t index, const Value& value) {
  return Check(report, index, value).run();
}

bool verify_quantized_input(const Graph& graph, const Node& node, std::size_t input) {
  const Value& value = graph.values[node.inputs[input]];
  const Quantization& q = value.quantization;
  const bool dense = node.op == Op::MatMul || node.op == Op::Convolution || node.op == Op::TransposedConvolution;
  if (node.op == Op::Dequantize) return true;
  if (node.op == Op::Convert) return false;
  if (node.op == Op::Copy) return q.bits == 8 && q.kind != Kind::PerRow;
  if (q.kind == Kind::PerRow) return dense && input == 0;
  if (value.dtype == ScalarType::Int) return dense && input == 2;
  if (q.kind != Kind::PerTensor && node.op == Op::Transpose) return q.kind == Kind::PerChannel && q.bits == 8;
  const bool weight = (dense && input >= 1) || (node.op == Op::Embedding && input == 0);
  if (q.bits == 4 || q.kind != Kind::PerTensor) return weight;
  return true;
}

bool verify_quantized_output(const Graph& graph, const Node& node, std::size_t output) {
  const Value& value = graph.values[node.outputs[output]];
  if (value.dtype == ScalarType::Int) return false;
  if (value.quantization.kind == Kind::PerRow) return node.op == Op::Quantize;
  return node.op != Op::Dequantize && node.op != Op::Convert && node.op != Op::ArgReduce;
}

}  // namespace wb::engine
