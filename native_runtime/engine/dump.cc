#include "engine/dump.h"

#include <cstdio>

#include "engine/names.h"

namespace wb::engine {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string pair(std::int64_t a, std::int64_t b) { return std::to_string(a) + "x" + std::to_string(b); }

std::string name_of_value(ValueId id) { return id == kNoValue ? "none" : "%" + std::to_string(id); }

std::string sizes_of(const Value& value) {
  std::string text = "[";
  for (int d = 0; d < value.shape.rank; ++d) {
    if (d != 0) text += ", ";
    if ((value.dynamic >> d & 1U) != 0) text += "<=";
    text += std::to_string(value.shape.sizes[d]);
  }
  return text + "]";
}

std::string quantization_of(const Value& value) {
  const Quantization& q = value.quantization;
  const std::string zero = q.zero_point == 0 ? "" : " zero " + std::to_string(q.zero_point);
  const std::string bits = q.bits == 8 ? "" : " bits " + std::to_string(q.bits);
  switch (q.kind) {
    case Quantization::Kind::None: return "";
    case Quantization::Kind::PerTensor: return " scale " + number(static_cast<double>(q.scale)) + zero + bits;
    case Quantization::Kind::PerChannel: return " scales along " + std::to_string(q.axis) + zero + bits;
    case Quantization::Kind::PerGroup: return " scales by " + std::to_string(q.group) + zero + bits;
    case Quantization::Kind::PerRow: return " scales by row";
  }
  return "";
}

std::string list_of(const std::vector<ValueId>& ids) {
  std::string text;
  for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + name_of_value(id);
  return text;
}

std::string window_of(const Window& window) {
  std::string text = " " + pair(window.kernel_h, window.kernel_w);
  if (window.stride_h != 1 || window.stride_w != 1) text += " stride " + pair(window.stride_h, window.stride_w);
  if (window.dilation_h != 1 || window.dilation_w != 1) {
    text += " dilation " + pair(window.dilation_h, window.dilation_w);
  }
  const std::int64_t pads[] = {window.pad_top, window.pad_right, window.pad_bottom, window.pad_left};
  if ((pads[0] | pads[1] | pads[2] | pads[3]) != 0) {
    text += " pad";
    for (const std::int64_t pad : pads) text += " " + std::to_string(pad);
  }
  return text + (window.ceil_mode ? " ceil" : "") + (window.count_include_pad ? " pads count" : "");
}

std::string rules_of(const Attributes& attributes) {
  std::string text = " to [";
  for (int d = 0; d < attributes.rank; ++d) {
    const SizeRule& rule = attributes.sizes[d];
    if (d != 0) text += ", ";
    if (rule.value == SizeRule::kInfer) {
      text += "?";
    } else if (rule.from_input >= 0) {
      text += "in" + std::to_string(rule.from_input) + (rule.value > 1 ? "*" + std::to_string(rule.value) : "");
    } else {
      text += std::to_string(rule.value);
    }
  }
  return text + "]";
}

std::string attributes_of(const Graph& graph, const Node& node) {
  const Attributes& a = node.attributes;
  switch (node.op) {
    case Op::Convolution:
    case Op::TransposedConvolution: {
      std::string text = window_of(a.window);
      if (a.groups != 1) text += " groups " + std::to_string(a.groups);
      if ((a.output_padding_h | a.output_padding_w) != 0) {
        text += " output padding " + pair(a.output_padding_h, a.output_padding_w);
      }
      return text;
    }
    case Op::MaxPool:
    case Op::AvgPool: return window_of(a.window);
    case Op::MatMul: return a.transpose_b ? " transposed" : "";
    case Op::Reduce: return " mask " + std::to_string(a.mask) + (a.keep ? " keep" : "");
    case Op::Softmax:
    case Op::Concat:
    case Op::Gather:
    case Op::ArgReduce: return " axis " + std::to_string(a.axis);
    case Op::LayerNorm:
    case Op::RmsNorm: return " over " + std::to_string(a.axis) + " eps " + number(a.eps);
    case Op::GroupNorm: return " groups " + std::to_string(a.groups) + " eps " + number(a.eps);
    case Op::Slice:
      return " axis " + std::to_string(a.axis) + " from " + std::to_string(a.begin) + " to " + std::to_string(a.end) +
             (a.step != 1 ? " step " + std::to_string(a.step) : "");
    case Op::Transpose: {
      std::string text;
      const int rank = graph.values[node.inputs[0]].shape.rank;
      for (int d = 0; d < rank; ++d) text += " " + std::to_string(a.permutation[d]);
      return text;
    }
    case Op::Reshape:
    case Op::Expand: return rules_of(a);
    case Op::Pad: {
      std::string text = " fill " + number(a.fill);
      const int rank = graph.values[node.inputs[0]].shape.rank;
      for (int d = 0; d < rank; ++d) text += " " + std::to_string(a.before[d]) + "+" + std::to_string(a.after[d]);
      return text;
    }
    case Op::Upsample: return " to " + pair(a.out_h, a.out_w) + (a.align_corners ? " corners" : "");
    default: return "";
  }
}

std::string program_of(const Node& node) {
  std::string text;
  for (const PointwiseStep& step : node.post) {
    text += std::string(" ") + name_of(step.fn) + "(";
    for (int i = 0; i < arity_of(step.fn); ++i) {
      const int operand = step.operands[i];
      text += i == 0 ? "" : ", ";
      text +=
          operand < kInputRegister ? "r" + std::to_string(operand) : "in" + std::to_string(operand - kInputRegister);
    }
    if (step.a != 0 || step.b != 0) text += "; " + number(step.a) + ", " + number(step.b);
    text += ")";
  }
  return text;
}

}  // namespace

std::string dump(const Graph& graph) {
  std::string text;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    if (value.kind == ValueKind::Temporary) continue;
    const char* kind = value.kind == ValueKind::Input    ? "input"
                       : value.kind == ValueKind::Output ? "output"
                                                         : "constant";
    text += kind;
    if (value.kind != ValueKind::Constant) text += " " + std::to_string(value.external);
    text += ": " + name_of_value(id) + " " + wb::name_of(value.dtype) + " " + sizes_of(value) + quantization_of(value) +
            "\n";
  }
  for (const Node& node : graph.nodes) {
    text += list_of(node.outputs) + " = " + name_of(node.op) + "(" + list_of(node.inputs) + ")";
    text += attributes_of(graph, node) + program_of(node);
    if (!node.post_inputs.empty()) text += " with " + list_of(node.post_inputs);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) text += " " + sizes_of(graph.values[id]) + quantization_of(graph.values[id]);
    }
    for (std::size_t i = 0; i < node.sources.size(); ++i) {
      text += (i == 0 ? " @" : "+") + std::to_string(node.sources[i]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace wb::engine
