// Random graphs of all kinds of nodes, for properties that hold for every graph.
#pragma once

#include "engine/test_support.h"

namespace wb::engine::test {

struct RandomGraph {
  Builder builder;
  std::vector<Shape> inputs, outputs;  // bounds
};

// Images in the order of PyTorch, with Transpose nodes round each convolution and pool, as front ends give them; at the
// end features, rows, a matrix product. With `dynamic`, the number of images is. With `quantized`, most results go
// through Quantize and Dequantize nodes, and weights are integers.
void make_random_graph(std::uint64_t seed, bool dynamic, RandomGraph* graph, bool quantized = false);
// Of the integers that such graphs have.
inline constexpr float kTestStep = 1.0F / 64;

// Compiles and runs; false (with the text printed) when either fails. Outputs are resized to what came out.
struct RunResult {
  std::vector<std::vector<float>> outputs;
  std::vector<Shape> shapes;
  std::string description;
};
[[nodiscard]] bool run_graph(const Graph& graph, const std::vector<Shape>& inputs, std::uint64_t seed, bool fuse,
                             RunResult* result, EventSink* trace = nullptr);

// Differs by no more than float32 sums in another order do.
[[nodiscard]] bool close(const std::vector<float>& a, const std::vector<float>& b);

// The same of graphs that round to integers: a step here and there.
[[nodiscard]] bool close_by_steps(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace wb::engine::test
