// Values inside of a fused graph are those of the graph that runs node by node.
#include <map>

#include "engine/test_graphs.h"

namespace wb::engine::test {
namespace {

// Keeps what is handed over, with the elements in the order of the dimensions.
class Capture final : public EventSink {
 public:
  struct Value {
    Shape shape;
    std::vector<float> data;
  };

  void record(const Event& event) override {
    if (event.kind == EventKind::Delegate && event.delegate_debug_name != nullptr)
      events.push_back(event.delegate_debug_name);
  }
  [[nodiscard]] bool wants_outputs() const override { return true; }
  void output(const Event& event, int index, const Tensor& tensor) override {
    Value value;
    std::int64_t strides[kMaxRank] = {};
    std::int64_t step = 1;
    for (int i = tensor.rank; i-- > 0; step *= tensor.sizes[tensor.dim_order[i]]) strides[tensor.dim_order[i]] = step;
    for (int d = 0; d < tensor.rank; ++d) value.shape.sizes[value.shape.rank++] = tensor.sizes[d];
    std::int64_t at[kMaxRank] = {};
    for (std::int64_t i = 0; i < step; ++i) {
      std::int64_t offset = 0;
      for (int d = 0; d < tensor.rank; ++d) offset += at[d] * strides[d];
      value.data.push_back(tensor.dtype == ScalarType::Float  ? static_cast<const float*>(tensor.data)[offset]
                           : tensor.dtype == ScalarType::Char ? static_cast<const std::int8_t*>(tensor.data)[offset]
                                                              : static_cast<const std::uint8_t*>(tensor.data)[offset]);
      for (int d = tensor.rank; d-- > 0;) {
        if (++at[d] < tensor.sizes[d]) break;
        at[d] = 0;
      }
    }
    std::string id = event.delegate_debug_name;
    id += '/';
    id += std::to_string(index);
    values[id] = std::move(value);
  }

  std::map<std::string, Value> values;
  std::vector<std::string> events;
};

bool moves_only(Op op) {
  return op == Op::Transpose || op == Op::Reshape || op == Op::Slice || op == Op::Copy || op == Op::Concat ||
         op == Op::Pad;
}

// True if a node of the compiled graph stands for this source.
bool names(const std::string& description, const std::string& source) {
  for (const char before : {'#', '+'}) {
    for (const char after : {'+', ':', ' '}) {
      std::string text(1, before);
      text += source;
      text += after;
      if (description.find(text) != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace

void test_taps() {
  for (std::uint64_t seed = 1000; seed < 1160; ++seed) {
    RandomGraph graph;
    const bool quantized = seed >= 1100;
    make_random_graph(seed, seed % 4 == 0, &graph, quantized);
    Capture plain;
    Capture fused;
    RunResult plain_result;
    RunResult fused_result;
    CHECK(run_graph(graph.builder.graph, graph.inputs, seed, false, &plain_result, &plain));
    CHECK(run_graph(graph.builder.graph, graph.inputs, seed, true, &fused_result, &fused));
    for (std::size_t i = 0; i < plain_result.outputs.size(); ++i) {
      CHECK(quantized ? close_by_steps(plain_result.outputs[i], fused_result.outputs[i])
                      : close(plain_result.outputs[i], fused_result.outputs[i]));
    }
    bool fits = true;
    for (const auto& [id, value] : fused.values) {
      const auto found = plain.values.find(id);
      const bool same =
          found != plain.values.end() && found->second.shape == value.shape &&
          (quantized ? close_by_steps(found->second.data, value.data) : close(found->second.data, value.data));
      if (!same) std::printf("value %s differs\n", id.c_str());
      fits = fits && same;
    }
    // What computes is handed over however it was fused; what only moves may have vanished. What leads nowhere has.
    for (const Node& node : graph.builder.graph.nodes) {
      std::string id = std::to_string(node.sources[0]);
      const bool dead = !names(fused_result.description, id);
      id += "/0";
      const bool constant = graph.builder.graph.values[node.inputs[0]].kind == ValueKind::Constant;
      // What quantizes moved elements may have vanished with the move.
      bool moved = moves_only(node.op);
      for (const Node& other : graph.builder.graph.nodes) {
        const bool feeds = node.op == Op::Quantize && other.outputs[0] == node.inputs[0];
        moved = moved || (feeds && moves_only(other.op));
      }
      if (moved || dead || constant) continue;
      if (!fused.values.contains(id)) std::printf("value %s is missing\n", id.c_str());
      fits = fits && fused.values.contains(id);
    }
    CHECK(fits);
    if (fits) continue;
    std::printf("seed %llu\n%s%s", static_cast<unsigned long long>(seed), plain_result.description.c_str(),
                fused_result.description.c_str());
    return;
  }
}

}  // namespace wb::engine::test
