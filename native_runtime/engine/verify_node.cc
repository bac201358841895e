// What a node's attributes and the types of its values may be.
#include <array>
#include <cmath>

#include "engine/names.h"
#include "engine/verify.h"

namespace wb::engine {
namespace {

// Windows, paddings and factors beyond this are no network's; below it, sums and products of them don't overflow.
constexpr std::int64_t kMostSmall = std::int64_t{1} << 30;

Error check_window(const Reporter& report, const Window& w) {
  for (const std::int64_t value : {w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w}) {
    if (value < 1 || value > kMostSmall) {
      return report.fail(Error::InvalidProgram, "kernel, stride or dilation of %lld", static_cast<long long>(value));
    }
  }
  for (const std::int64_t value : {w.pad_top, w.pad_bottom, w.pad_left, w.pad_right, w.divisor}) {
    if (value < -kMostSmall || value > kMostSmall) {
      return report.fail(Error::InvalidProgram, "padding or divisor of %lld", static_cast<long long>(value));
    }
  }
  return Error::Ok;
}

Error check_padding(const Reporter& report, const Attributes& a) {
  if (a.pad_mode > Attributes::PadMode::Replicate) {
    return report.fail(Error::InvalidProgram, "padding mode %u", static_cast<unsigned>(a.pad_mode));
  }
  for (int d = 0; d < kMaxRank; ++d) {
    for (const std::int64_t value : {a.before[d], a.after[d]}) {
      if (value < -kMaxElements || value > kMaxElements) {
        return report.fail(Error::InvalidProgram, "padding of %lld", static_cast<long long>(value));
      }
    }
  }
  return Error::Ok;
}

Error check_upsample(const Reporter& report, const Attributes& a) {
  const bool fits = a.upsample_mode <= Attributes::UpsampleMode::Bilinear && std::isfinite(a.scale_h) &&
                    std::isfinite(a.scale_w) && a.scale_h >= 0 && a.scale_w >= 0 && a.out_h >= 0 &&
                    a.out_h <= kMostSmall && a.out_w >= 0 && a.out_w <= kMostSmall;
  if (fits) return Error::Ok;
  return report.fail(Error::InvalidProgram, "mode %u, scales %g and %g, sizes %lld and %lld",
                     static_cast<unsigned>(a.upsample_mode), a.scale_h, a.scale_w, static_cast<long long>(a.out_h),
                     static_cast<long long>(a.out_w));
}

bool is_index(ScalarType type) { return type == ScalarType::Long || type == ScalarType::Int; }
bool is_float(ScalarType type) { return type == ScalarType::Float || type == ScalarType::Half; }

bool computes_numbers(Op op) {
  switch (op) {
    case Op::MatMul:
    case Op::Convolution:
    case Op::TransposedConvolution:
    case Op::MaxPool:
    case Op::AvgPool:
    case Op::Softmax:
    case Op::LayerNorm:
    case Op::RmsNorm:
    case Op::GroupNorm:
    case Op::Attention:
    case Op::Lstm:
    case Op::Gru:
    case Op::Quantize:
    case Op::Upsample: return true;
    default: return false;
  }
}

bool moves_elements(Op op) {
  switch (op) {
    case Op::Transpose:
    case Op::Reshape:
    case Op::Expand:
    case Op::Concat:
    case Op::Slice:
    case Op::Pad:
    case Op::Gather:
    case Op::Embedding:
    case Op::Copy: return true;
    default: return false;
  }
}

// Inputs that are no data: masks and indices. `fits` says whether the type suits them.
bool is_special(const Node& node, std::size_t input, ScalarType type, bool* fits) {
  if (node.op == Op::Attention && input == 3) {
    *fits = is_float(type) || type == ScalarType::Bool;
    return true;
  }
  if ((node.op == Op::Embedding || node.op == Op::Gather) && input == 1) {
    *fits = is_index(type);
    return true;
  }
  return false;
}

}  // namespace

Error verify_attributes(const Reporter& report, const Node& node) {
  const Attributes& a = node.attributes;
  switch (node.op) {
    case Op::Convolution:
    case Op::TransposedConvolution:
    case Op::GroupNorm:
      if (a.groups < 1 || a.groups > kMostSmall || a.output_padding_h < 0 || a.output_padding_w < 0 ||
          a.output_padding_h > kMostSmall || a.output_padding_w > kMostSmall) {
        return report.fail(Error::InvalidProgram, "%lld groups, output padding %lld, %lld",
                           static_cast<long long>(a.groups), static_cast<long long>(a.output_padding_h),
                           static_cast<long long>(a.output_padding_w));
      }
      return check_window(report, a.window);
    case Op::MaxPool:
    case Op::AvgPool: return check_window(report, a.window);
    case Op::Reduce:
      if (a.reduce > ReduceFn::L2) {
        return report.fail(Error::InvalidProgram, "reduction %u", static_cast<unsigned>(a.reduce));
      }
      return Error::Ok;
    case Op::Lstm:
    case Op::Gru:
      if (a.layers < 1 || a.layers > (1 << 16) || a.hidden < 1 || a.hidden > kMostSmall) {
        return report.fail(Error::InvalidProgram, "%lld layers of %lld", static_cast<long long>(a.layers),
                           static_cast<long long>(a.hidden));
      }
      return Error::Ok;
    case Op::Slice:
      if (a.step < 1) return report.fail(Error::InvalidProgram, "step %lld", static_cast<long long>(a.step));
      return Error::Ok;
    case Op::Reshape:
    case Op::Expand:
      if (a.rank > kMaxRank) return report.fail(Error::InvalidProgram, "rank %u", a.rank);
      return Error::Ok;
    case Op::Attention:
      for (const HeadOrder& order : a.head_orders) {
        if (order.kind > HeadOrder::Kind::Columns) {
          return report.fail(Error::InvalidProgram, "order of heads %u", static_cast<unsigned>(order.kind));
        }
      }
      return Error::Ok;
    case Op::Pad: return check_padding(report, a);
    case Op::Upsample: return check_upsample(report, a);
    default: return Error::Ok;
  }
}

Error verify_types(const Reporter& report, const Graph& graph, const Node& node) {
  const auto is_number = [&](ValueId id) {
    return is_float(graph.values[id].dtype) || graph.values[id].quantization.present();
  };
  const auto type = [&](ValueId id) { return graph.values[id].dtype; };
  const ValueId first = node.outputs[0];
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue) continue;
    bool fits = true;
    if (!is_special(node, i, type(id), &fits)) {
      if (computes_numbers(node.op)) fits = is_number(id);
      // Elements as they are; or numbers, of which one side or both are quantized.
      const bool quantizes =
          first != kNoValue && graph.values[id].quantization.present() != graph.values[first].quantization.present();
      if (moves_elements(node.op)) {
        const bool same = type(id) == type(first) && (!quantizes || node.op == Op::Copy);
        fits = same || (quantizes && is_number(id) && is_number(first));
      }
      if (node.op == Op::Dequantize) fits = graph.values[id].quantization.present();
    }
    if (fits && graph.values[id].quantization.present()) fits = verify_quantized_input(graph, node, i);
    if (!fits)
      return report.fail(Error::InvalidProgram, "input %zu is of type %s%s", i, name_of(type(id)),
                         graph.values[id].quantization.present() ? ", quantized" : "");
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (id == kNoValue) continue;
    bool fits = true;
    if (computes_numbers(node.op)) fits = is_number(id);
    if (node.op == Op::ArgReduce) fits = type(id) == ScalarType::Long;
    if (node.op == Op::Quantize) fits = graph.values[id].quantization.present();
    if (node.op == Op::Dequantize) fits = is_float(type(id));
    if (fits && graph.values[id].quantization.present()) fits = verify_quantized_output(graph, node, i);
    if (!fits)
      return report.fail(Error::InvalidProgram, "its result is of type %s%s", name_of(type(id)),
                         graph.values[id].quantization.present() ? ", quantized" : "");
  }
  for (std::size_t i = 0; i < node.post_inputs.size(); ++i) {
    const Quantization& q = graph.values[node.post_inputs[i]].quantization;
    if (!q.present() || q.kind == Quantization::Kind::PerTensor) continue;
    return report.fail(Error::InvalidProgram, "operand %zu of its epilogue is quantized otherwise than as a whole", i);
  }
  return Error::Ok;
}

}  // namespace wb::engine
