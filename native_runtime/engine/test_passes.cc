// Properties of the passes: what they may change and what not.
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

std::size_t transposes(std::string_view text) { return count(text, "transpose #") + count(text, "transpose ("); }

// A network of convolutions as a front end gives it: PyTorch's order everywhere, Transpose nodes round each.
struct Network {
  Builder b;
  ValueId x = kNoValue;

  void convolve(std::int64_t cout, std::int64_t kernel, std::int64_t stride) {
    const Shape in = b.shape(x);
    const std::int64_t cin = in.sizes[1];
    const std::int64_t pad = kernel / 2;
    const ValueId nhwc = b.transpose(x, {0, 2, 3, 1});
    const std::int64_t size = (in.sizes[2] + 2 * pad - kernel) / stride + 1;
    const ValueId y = b.temporary(shape_of({in.sizes[0], size, size, cout}));
    Random random(static_cast<std::uint64_t>(cout));
    const ValueId weight =
        b.constant(shape_of({cout, cin, kernel, kernel}), random.values(cout * cin * kernel * kernel));
    Attributes& a = b.node(Op::Convolution, {nhwc, weight, kNoValue}, y).attributes;
    a.window = {kernel, kernel, stride, stride, 1, 1, pad, pad, pad, pad};
    a.weight_order = {cin * kernel * kernel, kernel * kernel, kernel, 1};
    x = b.transpose(y, {0, 3, 1, 2});
  }
  void relu() { x = b.pointwise(Fn::Clamp, {x}, b.shape(x), 0, 6); }
};

void a_network_of_convolutions_keeps_one_transpose() {
  Network n;
  n.x = n.b.input(shape_of({1, 3, 16, 16}));
  n.convolve(8, 3, 2);
  n.relu();
  const ValueId shortcut = n.x;
  n.convolve(8, 3, 1);
  n.relu();
  n.convolve(8, 3, 1);
  n.x = n.b.pointwise(Fn::Add, {n.x, shortcut}, n.b.shape(n.x));
  n.relu();
  const ValueId mean = n.b.temporary(shape_of({1, 8, 1, 1}));
  Attributes& a = n.b.node(Op::Reduce, {n.x}, mean).attributes;
  a.reduce = ReduceFn::Mean;
  a.mask = 0b1100;
  a.keep = true;
  const ValueId flat = n.b.reshape(mean, shape_of({1, 8}));
  const ValueId weight = n.b.constant(shape_of({5, 8}), Random(1).values(40));
  const ValueId y = n.b.temporary(shape_of({1, 5}));
  n.b.node(Op::MatMul, {flat, weight, kNoValue}, y).attributes.transpose_b = true;
  n.b.output(y);
  RunResult fused;
  RunResult plain;
  CHECK(run_graph(n.b.graph, {shape_of({1, 3, 16, 16})}, 1, true, &fused));
  CHECK(run_graph(n.b.graph, {shape_of({1, 3, 16, 16})}, 1, false, &plain));
  CHECK(close(fused.outputs[0], plain.outputs[0]));
  CHECK(transposes(fused.description) == 1);
  CHECK(count(fused.description, "convolution+add+clamp") == 1);
  CHECK(count(fused.description, "convolution+clamp") == 2);
  CHECK(count(fused.description, "= reshape") >= 1 &&
        count(fused.description, " reshape") == count(fused.description, "= reshape"));
  if (failures != 0) std::printf("%s", fused.description.c_str());
}

void attention_reads_heads_inside_rows() {
  Builder b;
  const std::int64_t l = 5;
  const ValueId x = b.input(shape_of({2, l, 12}));
  const ValueId five = b.reshape(x, shape_of({2, l, 3, 2, 2}));
  const ValueId heads = b.transpose(five, {2, 0, 3, 1, 4});
  std::vector<ValueId> qkv;
  for (int i = 0; i < 3; ++i) {
    const ValueId one = b.temporary(shape_of({1, 2, 2, l, 2}));
    Attributes& a = b.node(Op::Slice, {heads}, one).attributes;
    a.axis = 0;
    a.begin = i;
    a.end = i + 1;
    qkv.push_back(b.reshape(one, shape_of({2, 2, l, 2})));
  }
  const ValueId out = b.temporary(shape_of({2, 2, l, 2}));
  b.node(Op::Attention, qkv, out).attributes.scale = 0.7;
  const ValueId y = b.reshape(b.transpose(out, {0, 2, 1, 3}), shape_of({2, l, 4}));
  b.output(y);
  RunResult fused;
  RunResult plain;
  CHECK(run_graph(b.graph, {shape_of({2, l, 12})}, 1, true, &fused));
  CHECK(run_graph(b.graph, {shape_of({2, l, 12})}, 1, false, &plain));
  CHECK(close(fused.outputs[0], plain.outputs[0]));
  CHECK(count(fused.description, "transpose") == 0 && count(fused.description, "slice") == 0);
  CHECK(count(fused.description, "(columns@0 columns@4 columns@8 inner)") == 1);
  if (failures != 0) std::printf("%s", fused.description.c_str());
}

void random_graphs_give_the_same_fused_and_plain(std::uint64_t seeds) {
  std::size_t before = 0;
  std::size_t after = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const bool dynamic = seed % 3 == 2;
    RandomGraph graph;
    make_random_graph(seed, dynamic, &graph);
    std::vector<Shape> inputs = graph.inputs;
    if (dynamic) {
      for (Shape& shape : inputs) shape.sizes[0] = 1 + static_cast<std::int64_t>(seed) % shape.sizes[0];
    }
    RunResult fused;
    RunResult plain;
    const bool ran = run_graph(graph.builder.graph, inputs, seed, true, &fused) &&
                     run_graph(graph.builder.graph, inputs, seed, false, &plain);
    CHECK(ran);
    bool same = ran;
    for (std::size_t i = 0; same && i < plain.outputs.size(); ++i) {
      same = plain.shapes[i] == fused.shapes[i] && close(plain.outputs[i], fused.outputs[i]);
    }
    CHECK(same);
    before += transposes(plain.description);
    after += transposes(fused.description);
    if (same) continue;
    std::printf("seed %llu\n%s%s", static_cast<unsigned long long>(seed), plain.description.c_str(),
                fused.description.c_str());
    return;
  }
  std::printf("transposes of random graphs: %zu, %zu after the passes\n", before, after);
  CHECK(after * 3 < before * 2);
}

}  // namespace

void test_passes() {
  a_network_of_convolutions_keeps_one_transpose();
  attention_reads_heads_inside_rows();
  random_graphs_give_the_same_fused_and_plain(300);
}

}  // namespace wb::engine::test
