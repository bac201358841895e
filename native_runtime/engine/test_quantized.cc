// Graphs that quantize and dequantize: on integers they give what they give on numbers.
#include <algorithm>
#include <string_view>

#include "engine/test_graphs.h"

namespace wb::engine::test {
namespace {

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

struct Network {
  Builder b;

  ValueId quantized(ValueId x, float scale, std::int32_t zero) {
    const ValueId q = b.temporary(b.shape(x), ScalarType::Char);
    b.graph.values[q].quantization.kind = Quantization::Kind::PerTensor;
    b.graph.values[q].quantization.scale = scale;
    b.graph.values[q].quantization.zero_point = zero;
    b.node(Op::Quantize, {x}, q);
    return q;
  }
  ValueId numbers(ValueId q) {
    const ValueId x = b.temporary(b.shape(q));
    b.node(Op::Dequantize, {q}, x);
    return x;
  }
  ValueId rounded(ValueId x, float scale = kTestStep, std::int32_t zero = 3) {
    return numbers(quantized(x, scale, zero));
  }

  ValueId convolution(ValueId x, std::int64_t cout) {
    const Shape in = b.shape(x);
    const ValueId nhwc = b.transpose(x, {0, 2, 3, 1});
    const Shape shape = shape_of({cout, in.sizes[1], 3, 3});
    Random random(1);
    const ValueId integers = b.integers(shape, ScalarType::Char, random.values(shape.numel()),
                                        std::vector<float>(static_cast<std::size_t>(cout), 0.003F));
    const ValueId weight = b.temporary(shape);
    b.node(Op::Dequantize, {integers}, weight);
    const ValueId y = b.temporary(shape_of({in.sizes[0], in.sizes[2], in.sizes[3], cout}));
    Attributes& a = b.node(Op::Convolution, {nhwc, weight, kNoValue}, y).attributes;
    a.window = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    a.weight_order = {in.sizes[1] * 9, 9, 3, 1};
    return b.transpose(y, {0, 3, 1, 2});
  }
};

// What is between two roundings becomes one node on integers; transposes and concatenations move bytes.
void a_network_stays_on_integers() {
  Network n;
  const ValueId x = n.b.input(shape_of({1, 8, 6, 6}));
  const ValueId q = n.rounded(x);
  ValueId y = n.convolution(q, 8);
  y = n.rounded(n.b.pointwise(Fn::Clamp, {y}, n.b.shape(y), 0, 6));
  const ValueId sum = n.rounded(n.b.pointwise(Fn::Add, {y, q}, n.b.shape(y)), kTestStep * 2, -5);
  const ValueId joined = n.b.temporary(shape_of({1, 16, 6, 6}));
  n.b.node(Op::Concat, {sum, y}, joined).attributes.axis = 1;
  const ValueId gate = n.rounded(n.b.pointwise(Fn::HardSwish, {n.rounded(joined)}, n.b.shape(joined)));
  const ValueId out = n.b.temporary(n.b.shape(gate));
  n.b.node(Op::Copy, {gate}, out);
  n.b.output(out);
  RunResult fused;
  RunResult plain;
  CHECK(run_graph(n.b.graph, {shape_of({1, 8, 6, 6})}, 1, true, &fused));
  CHECK(run_graph(n.b.graph, {shape_of({1, 8, 6, 6})}, 1, false, &plain));
  CHECK(close_by_steps(fused.outputs[0], plain.outputs[0]));
  CHECK(count(plain.description, "dequantize") == 5);
  // One at the end; one for the constant if no method takes the weight as it is.
  CHECK(count(fused.description, "dequantize") == 1);
  CHECK(count(fused.description, "add") == 1 && count(fused.description, "hardswish") == 1);
  if (failures != 0) std::printf("%s", fused.description.c_str());
}

void rounding_twice_to_the_same_is_rounding_once() {
  Network n;
  const ValueId x = n.b.input(shape_of({2, 3, 4, 5}));
  const ValueId y = n.rounded(n.b.transpose(n.rounded(x), {0, 2, 3, 1}));
  const ValueId z = n.b.pointwise(Fn::MulScalar, {y}, n.b.shape(y), 2);
  n.b.output(z);
  RunResult fused;
  RunResult plain;
  CHECK(run_graph(n.b.graph, {shape_of({2, 3, 4, 5})}, 1, true, &fused));
  CHECK(run_graph(n.b.graph, {shape_of({2, 3, 4, 5})}, 1, false, &plain));
  CHECK(fused.outputs == plain.outputs);
  CHECK(count(fused.description, "quantize") == 1);
  if (failures != 0) std::printf("%s", fused.description.c_str());
}

void rows_are_quantized_at_run_time() {
  Builder b;
  const ValueId x = b.input(shape_of({3, 5, 40}));
  const ValueId q = b.temporary(b.shape(x), ScalarType::Char);
  b.graph.values[q].quantization.kind = Quantization::Kind::PerRow;
  b.node(Op::Quantize, {x}, q);
  const ValueId y = b.temporary(b.shape(x));
  b.node(Op::Dequantize, {q}, y);
  b.output(y);
  RunResult result;
  CHECK(run_graph(b.graph, {shape_of({3, 5, 40})}, 4, true, &result));
  Random random(4);
  bool fits = true;
  for (const float value : result.outputs[0]) fits = fits && std::abs(value - random.value()) <= 1.0F / 250;
  CHECK(fits);
}

void random_graphs_give_the_same_on_integers(std::uint64_t seeds) {
  std::size_t before = 0;
  std::size_t after = 0;
  for (std::uint64_t seed = 5000; seed < 5000 + seeds; ++seed) {
    RandomGraph graph;
    make_random_graph(seed, seed % 3 == 2, &graph, true);
    RunResult fused;
    RunResult plain;
    const bool ran = run_graph(graph.builder.graph, graph.inputs, seed, true, &fused) &&
                     run_graph(graph.builder.graph, graph.inputs, seed, false, &plain);
    CHECK(ran);
    bool same = ran;
    for (std::size_t i = 0; same && i < plain.outputs.size(); ++i) {
      same = plain.shapes[i] == fused.shapes[i] && close_by_steps(plain.outputs[i], fused.outputs[i]);
    }
    CHECK(same);
    before += count(plain.description, "quantize");
    after += count(fused.description, "quantize");
    if (same) continue;
    std::printf("seed %llu\n%s%s", static_cast<unsigned long long>(seed), plain.description.c_str(),
                fused.description.c_str());
    return;
  }
  std::printf("quantize and dequantize nodes of random graphs: %zu, %zu after the passes\n", before, after);
  CHECK(after * 2 < before);
}

}  // namespace

void test_quantized() {
  a_network_stays_on_integers();
  rounding_twice_to_the_same_is_rounding_once();
  rows_are_quantized_at_run_time();
  random_graphs_give_the_same_on_integers(200);
}

}  // namespace wb::engine::test
