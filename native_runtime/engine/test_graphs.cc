#include "engine/test_graphs.h"

#include <algorithm>
#include <cmath>

#include "engine/describe.h"

namespace wb::engine::test {
namespace {

class Maker {
 public:
  Maker(std::uint64_t seed, bool dynamic, RandomGraph* graph, bool quantized)
      : random_(seed), b_(graph->builder), graph_(*graph), quantized_(quantized) {
    dynamic_ = dynamic ? 1 : 0;
  }

  void run() {
    const Shape shape = shape_of({pick({1, 2, 3}), pick({1, 3, 4}), pick({4, 7, 8}), pick({4, 6, 9})});
    add_input(shape);
    if (random_.below(2) == 0) add_input(shape);
    const std::int64_t steps = 3 + random_.below(10);
    for (std::int64_t i = 0; i < steps; ++i) add_node();
    if (random_.below(2) == 0) finish_with_rows();
    const std::int64_t outputs = 1 + random_.below(2);
    for (std::int64_t i = 0; i < outputs; ++i) give(i == 0 ? images_.back() : any_image());
    if (rows_ != kNoValue) give(rows_);
  }

 private:
  std::int64_t pick(std::initializer_list<std::int64_t> from) {
    return *(from.begin() + random_.below(static_cast<std::int64_t>(from.size())));
  }
  ValueId any_image() {
    return images_[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(images_.size())))];
  }
  ValueId recent() { return random_.below(3) == 0 ? any_image() : images_.back(); }
  const Shape& shape(ValueId id) { return b_.shape(id); }
  std::uint8_t dynamic(ValueId id) { return b_.graph.values[id].dynamic; }

  void add_input(const Shape& shape) {
    images_.push_back(b_.input(shape, ScalarType::Float, dynamic_));
    graph_.inputs.push_back(shape);
  }

  ValueId value(const Shape& shape) { return b_.temporary(shape, ScalarType::Float, dynamic_); }

  void give(ValueId id) {
    // An output must not be an input, nor be given twice: through a copy.
    const ValueId out = value(shape(id));
    b_.node(Op::Copy, {id}, out);
    b_.output(out);
    graph_.outputs.push_back(shape(id));
  }

  ValueId transpose(ValueId x, std::initializer_list<int> permutation) {
    const ValueId y = b_.transpose(x, permutation);
    b_.graph.values[y].dynamic = dynamic_;
    return y;
  }
  ValueId nhwc(ValueId x) { return transpose(x, {0, 2, 3, 1}); }
  ValueId nchw(ValueId x) { return transpose(x, {0, 3, 1, 2}); }

  // The numbers that are left of x when it is rounded to integers of 8 bits.
  ValueId rounded(ValueId x) {
    if (!quantized_ || random_.below(6) == 0) return x;
    const bool bytes = random_.below(8) == 0;
    const ValueId q = b_.temporary(shape(x), bytes ? ScalarType::Byte : ScalarType::Char, dynamic_);
    Quantization& quantization = b_.graph.values[q].quantization;
    quantization.kind = Quantization::Kind::PerTensor;
    quantization.scale = kTestStep * static_cast<float>(1 + random_.below(2));
    quantization.zero_point = static_cast<std::int32_t>(random_.below(3) * 10 - 10 + (bytes ? 128 : 0));
    b_.node(Op::Quantize, {x}, q);
    const ValueId y = value(shape(x));
    b_.node(Op::Dequantize, {q}, y);
    return y;
  }

  // A weight or bias: floats, or integers with a scale for each index of the first dimension.
  ValueId parameter(const Shape& shape, bool bias) {
    const std::int64_t numel = shape.numel();
    if (!quantized_) return b_.constant(shape, random_.values(numel));
    std::vector<float> scales(static_cast<std::size_t>(shape.sizes[0]));
    for (float& scale : scales) scale = 0.001F + 0.002F * std::fabs(random_.value());
    const ValueId q = b_.integers(shape, bias ? ScalarType::Int : ScalarType::Char, random_.values(numel), scales);
    const ValueId y = b_.temporary(shape);
    b_.node(Op::Dequantize, {q}, y);
    return y;
  }

  ValueId convolution(ValueId x) {
    const Shape in = shape(x);
    const std::int64_t cin = in.sizes[1];
    const bool depthwise = random_.below(3) == 0;
    const std::int64_t cout = depthwise ? cin : pick({1, 4, 5});
    const std::int64_t kernel = std::min({pick({1, 3}), in.sizes[2], in.sizes[3]});
    const std::int64_t stride = pick({1, 1, 2});
    const std::int64_t pad = kernel / 2;
    const std::int64_t group = depthwise ? 1 : cin;
    const ValueId weight = parameter(shape_of({cout, group, kernel, kernel}), false);
    const ValueId bias = parameter(shape_of({cout}), true);
    const auto size = [&](std::int64_t n) { return (n + 2 * pad - kernel) / stride + 1; };
    const ValueId y = value(shape_of({in.sizes[0], size(in.sizes[2]), size(in.sizes[3]), cout}));
    Attributes& a = b_.node(Op::Convolution, {nhwc(x), weight, random_.below(2) == 0 ? bias : kNoValue}, y).attributes;
    a.groups = depthwise ? cin : 1;
    a.window = {kernel, kernel, stride, stride, 1, 1, pad, pad, pad, pad};
    a.weight_order = {group * kernel * kernel, kernel * kernel, kernel, 1};
    return nchw(y);
  }

  ValueId pool(ValueId x) {
    const Shape in = shape(x);
    if (in.sizes[2] < 2 || in.sizes[3] < 2) return x;
    const ValueId y = value(shape_of({in.sizes[0], in.sizes[2] / 2, in.sizes[3] / 2, in.sizes[1]}));
    Node& node = b_.node(random_.below(2) == 0 ? Op::MaxPool : Op::AvgPool, {nhwc(x)}, y);
    node.attributes.window = {2, 2, 2, 2, 1, 1};
    return nchw(y);
  }

  ValueId unary(ValueId x) {
    constexpr Fn kFns[] = {Fn::Tanh, Fn::Sigmoid, Fn::Clamp, Fn::HardSwish, Fn::MulScalar, Fn::AddScalar};
    const ValueId y = b_.pointwise(kFns[random_.below(6)], {x}, shape(x), -0.5F, 0.75F);
    b_.graph.values[y].dynamic = dynamic_;
    return y;
  }

  ValueId binary(ValueId x) {
    constexpr Fn kFns[] = {Fn::Add, Fn::Mul, Fn::Sub, Fn::Maximum};
    const Shape in = shape(x);
    ValueId other = kNoValue;
    switch (random_.below(4)) {
      case 0: other = b_.constant(shape_of({in.sizes[1], 1, 1}), random_.values(in.sizes[1])); break;
      case 1: other = b_.constant(shape_of({}), random_.values(1)); break;
      case 2:
        other = b_.constant(shape_of({in.sizes[1], in.sizes[2], in.sizes[3]}),
                            random_.values(in.sizes[1] * in.sizes[2] * in.sizes[3]));
        break;
      default: {
        std::vector<ValueId> fitting;
        for (const ValueId id : images_) {
          if (shape(id) == in) fitting.push_back(id);
        }
        other = fitting[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(fitting.size())))];
      }
    }
    std::vector<ValueId> operands = {x, other};
    if (random_.below(2) == 0) std::swap(operands[0], operands[1]);
    if (random_.below(5) == 0) operands[0] = operands[1] = x;
    const ValueId y = b_.pointwise(kFns[random_.below(4)], operands, in);
    b_.graph.values[y].dynamic = dynamic_;
    return y;
  }

  ValueId concat(ValueId x) {
    std::vector<ValueId> parts = {x};
    Shape out = shape(x);
    for (const ValueId id : images_) {
      Shape other = shape(id);
      other.sizes[1] = out.sizes[1];
      if (!(other == out) || parts.size() > 2) continue;
      parts.push_back(id);
    }
    std::int64_t channels = 0;
    for (const ValueId id : parts) channels += shape(id).sizes[1];
    if (channels > 24) return x;
    out.sizes[1] = channels;
    const ValueId y = value(out);
    b_.node(Op::Concat, parts, y).attributes.axis = 1;
    return y;
  }

  ValueId slice(ValueId x) {
    const int axis = 1 + static_cast<int>(random_.below(3));
    Shape out = shape(x);
    if (out.sizes[axis] < 2) return x;
    const std::int64_t begin = random_.below(out.sizes[axis]);
    out.sizes[axis] -= begin;
    const ValueId y = value(out);
    Attributes& a = b_.node(Op::Slice, {x}, y).attributes;
    a.axis = axis;
    a.begin = begin;
    a.end = INT64_MAX;
    return y;
  }

  ValueId pad(ValueId x) {
    Shape out = shape(x);
    const std::int64_t more = 1;
    out.sizes[2] += more;
    out.sizes[3] += more;
    const ValueId y = value(out);
    Attributes& a = b_.node(Op::Pad, {x}, y).attributes;
    a.before[2] = more;
    a.after[3] = more;
    return y;
  }

  ValueId squeeze(ValueId x) {
    // x times a gate of one number a channel
    Shape mean = shape(x);
    mean.sizes[2] = mean.sizes[3] = 1;
    const ValueId m = value(mean);
    Attributes& a = b_.node(Op::Reduce, {x}, m).attributes;
    a.reduce = ReduceFn::Mean;
    a.mask = 0b1100;
    a.keep = true;
    const ValueId gate = b_.pointwise(Fn::Sigmoid, {m}, mean);
    const ValueId y = b_.pointwise(Fn::Mul, {x, gate}, shape(x));
    b_.graph.values[gate].dynamic = b_.graph.values[y].dynamic = dynamic_;
    return y;
  }

  ValueId softmax(ValueId x) {
    const ValueId y = value(shape(x));
    b_.node(Op::Softmax, {x}, y).attributes.axis = 1 + static_cast<int>(random_.below(3));
    return y;
  }

  void add_node() {
    const ValueId x = recent();
    images_.push_back(rounded(made(x)));
  }

  ValueId made(ValueId x) {
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2: return convolution(x);
      case 3: return pool(x);
      case 4:
      case 5: return unary(x);
      case 6:
      case 7: return binary(x);
      case 8: return concat(x);
      case 9: return slice(x);
      case 10: return pad(x);
      default: return random_.below(2) == 0 ? squeeze(x) : softmax(x);
    }
  }

  // [n, c, h, w] -> [n, h w, c] times a matrix -> heads apart -> back
  void finish_with_rows() {
    const Shape in = shape(images_.back());
    const std::int64_t rows = in.sizes[2] * in.sizes[3];
    const ValueId flat = value(shape_of({in.sizes[0], in.sizes[1], rows}));
    reshape_to(images_.back(), flat);
    const ValueId tokens = transpose(flat, {0, 2, 1});
    const std::int64_t width = 6;
    const ValueId weight = parameter(shape_of({3 * width, in.sizes[1]}), false);
    const ValueId product = value(shape_of({in.sizes[0], rows, 3 * width}));
    if (random_.below(2) == 0) {
      b_.node(Op::MatMul, {tokens, weight, kNoValue}, product).attributes.transpose_b = true;
    } else {
      // As a matrix of all rows, like PyTorch's addmm.
      const ValueId matrix = value(shape_of({in.sizes[0] * rows, in.sizes[1]}));
      const ValueId result = value(shape_of({in.sizes[0] * rows, 3 * width}));
      infer_first(tokens, matrix);
      b_.node(Op::MatMul, {matrix, weight, kNoValue}, result).attributes.transpose_b = true;
      infer_first(result, product);
    }
    std::vector<ValueId> heads;
    for (int i = 0; i < 3; ++i) {
      const ValueId part = value(shape_of({in.sizes[0], rows, width}));
      Attributes& a = b_.node(Op::Slice, {product}, part).attributes;
      a.axis = 2;
      a.begin = i * width;
      a.end = a.begin + width;
      const ValueId split = value(shape_of({in.sizes[0], rows, 2, width / 2}));
      reshape_to(part, split);
      heads.push_back(transpose(split, {0, 2, 1, 3}));
    }
    const ValueId attended = value(shape_of({in.sizes[0], 2, rows, width / 2}));
    b_.node(Op::Attention, heads, attended).attributes.scale = 0.5;
    const ValueId back = transpose(attended, {0, 2, 1, 3});
    rows_ = value(shape_of({in.sizes[0], rows, width}));
    reshape_to(back, rows_);
  }

  void infer_first(ValueId x, ValueId y) {
    reshape_to(x, y);
    b_.graph.nodes.back().attributes.sizes[0] = {.value = SizeRule::kInfer};
  }

  void reshape_to(ValueId x, ValueId y) {
    Attributes& a = b_.node(Op::Reshape, {x}, y).attributes;
    a.rank = shape(y).rank;
    a.sizes[0].from_input = 0;
    for (int d = 1; d < a.rank; ++d) a.sizes[d].value = shape(y).sizes[d];
  }

  Random random_;
  Builder& b_;
  RandomGraph& graph_;
  std::uint8_t dynamic_;
  bool quantized_;
  std::vector<ValueId> images_;
  ValueId rows_ = kNoValue;
};

}  // namespace

void make_random_graph(std::uint64_t seed, bool dynamic, RandomGraph* graph, bool quantized) {
  Maker(seed, dynamic, graph, quantized).run();
}

bool run_graph(const Graph& graph, const std::vector<Shape>& inputs, std::uint64_t seed, bool fuse, RunResult* result,
               EventSink* trace) {
  TestHost host;
  BackendInitContext context = host.init();
  Graph copy = graph;
  Options options;
  options.fuse = fuse;
  Result<Program*> program = compile(context, std::move(copy), options);
  if (!program.ok()) {
    std::printf("compile: %s\n", host.text.c_str());
    return false;
  }
  result->description = describe(**program);
  Random random(seed);
  std::vector<std::unique_ptr<TestTensor>> tensors;
  std::vector<EValue*> args;
  for (const Shape& shape : inputs) {
    tensors.push_back(std::make_unique<TestTensor>(shape));
    for (std::int64_t i = 0; i < shape.numel(); ++i) tensors.back()->floats()[i] = random.value();
  }
  std::vector<const Value*> outputs(graph.outputs);
  for (const Value& value : graph.values) {
    if (value.kind == ValueKind::Output) outputs[value.external] = &value;
  }
  for (const Value* value : outputs) tensors.push_back(std::make_unique<TestTensor>(value->shape));
  for (const auto& tensor : tensors) args.push_back(&tensor->value);
  BackendExecuteContext run = host.run(trace);
  const bool ok = execute(run, **program, args) == Error::Ok;
  if (!ok) std::printf("execute: %s\n", host.text.c_str());
  for (std::size_t i = inputs.size(); ok && i < tensors.size(); ++i) {
    TestTensor& tensor = *tensors[i];
    Shape shape;
    for (int d = 0; d < tensor.tensor.rank; ++d) shape.sizes[shape.rank++] = tensor.sizes[d];
    result->shapes.push_back(shape);
    result->outputs.emplace_back(tensor.floats(), tensor.floats() + shape.numel());
  }
  destroy(*program);
  return ok;
}

bool close(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  float most = 0;
  for (const float value : a) most = std::max(most, std::fabs(value));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= 2e-5F * (1 + most))) return false;
  }
  return true;
}

bool close_by_steps(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  // Of integers, 1; of numbers, a few steps of the coarsest kind.
  double sum = 0;
  double magnitude = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = static_cast<double>(std::fabs(a[i] - b[i]));
    if (!(apart <= 0.3 + 0.02 * static_cast<double>(std::fabs(a[i]))) && !(apart <= 8 && std::fabs(a[i]) > 2))
      return false;
    sum += apart;
    magnitude += static_cast<double>(std::fabs(a[i]));
  }
  return sum <= 0.02 * (magnitude + static_cast<double>(a.size()));
}

}  // namespace wb::engine::test
