// Graphs with something wrong in them end in an error with a text, or run: nothing else.
#include <cmath>

#include "engine/test_graphs.h"

namespace wb::engine::test {
namespace {

void mutate(Random& random, Graph& graph) {
  const auto number = [&]() -> std::int64_t {
    constexpr std::int64_t kValues[] = {0, 1, -1, 2, 3, 7, 255, 1 << 20, INT64_MAX, INT64_MIN, std::int64_t{1} << 40};
    return kValues[random.below(11)];
  };
  const auto id = [&] {
    return random.below(8) == 0
               ? static_cast<ValueId>(random.next())
               : static_cast<ValueId>(random.below(static_cast<std::int64_t>(graph.values.size()) + 1));
  };
  Node& node = graph.nodes[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(graph.nodes.size())))];
  Value& value = graph.values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(graph.values.size())))];
  Attributes& a = node.attributes;
  const auto any = [&](std::size_t count) {
    return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(count)));
  };
  switch (random.below(22)) {
    case 0:
      if (!node.inputs.empty()) node.inputs[any(node.inputs.size())] = id();
      break;
    case 1: node.outputs[any(node.outputs.size())] = id(); break;
    case 2: node.op = static_cast<Op>(random.below(kOpCount + 3)); break;
    case 3: node.inputs.pop_back(); break;
    case 4: node.inputs.push_back(id()); break;
    case 5: value.shape.sizes[any(kMaxRank)] = number(); break;
    case 6: value.shape.rank = static_cast<std::uint8_t>(random.below(12)); break;
    case 7: value.dynamic = static_cast<std::uint8_t>(random.next()); break;
    case 8: value.kind = static_cast<ValueKind>(random.below(5)); break;
    case 9: value.dtype = static_cast<ScalarType>(random.below(40) - 5); break;
    case 10: value.external = static_cast<std::uint32_t>(number()); break;
    case 11: {
      std::int64_t* fields[] = {&a.window.kernel_h,
                                &a.window.stride_w,
                                &a.window.dilation_h,
                                &a.window.pad_top,
                                &a.groups,
                                &a.weight_order.cout,
                                &a.weight_order.w,
                                &a.begin,
                                &a.end,
                                &a.step,
                                &a.before[any(kMaxRank)],
                                &a.after[any(kMaxRank)],
                                &a.layers,
                                &a.hidden};
      *fields[any(std::size(fields))] = number();
      break;
    }
    case 12: a.axis = static_cast<int>(number()); break;
    case 13: a.mask = static_cast<std::uint32_t>(random.next()); break;
    case 14: a.permutation[any(kMaxRank)] = static_cast<std::uint8_t>(random.below(10)); break;
    case 15: a.sizes[any(kMaxRank)] = {number(), static_cast<std::int8_t>(random.below(10) - 1)}; break;
    case 16: a.rank = static_cast<std::uint8_t>(random.below(12)); break;
    case 17:
      if (!node.post.empty()) {
        PointwiseStep& step = node.post[any(node.post.size())];
        if (random.below(2) == 0) {
          step.fn = static_cast<Fn>(random.below(kFnCount + 3));
        } else {
          step.operands[any(3)] = static_cast<std::uint8_t>(random.next());
        }
      }
      break;
    case 19:
    case 20: {
      Quantization& q = value.quantization;
      constexpr float kScales[] = {1, 0.5F, 0, -1, 1e-45F, 1e38F, INFINITY, NAN, 2e-3F};
      static const float kNone[1] = {-1};
      switch (random.below(8)) {
        case 0: q.kind = static_cast<Quantization::Kind>(random.below(7)); break;
        case 1: q.bits = static_cast<std::uint8_t>(random.below(3) == 0 ? random.next() : 4); break;
        case 2: q.axis = static_cast<int>(number()); break;
        case 3: q.group = number(); break;
        case 4: q.scale = kScales[random.below(9)]; break;
        case 5: q.zero_point = static_cast<std::int32_t>(number()); break;
        case 6: q.scales = random.below(2) == 0 ? nullptr : kNone; break;
        default:
          q.kind = Quantization::Kind::PerTensor;
          value.dtype = random.below(2) == 0 ? ScalarType::Char : ScalarType::Byte;
          break;
      }
      break;
    }
    case 18:
      node.post.push_back({static_cast<Fn>(random.below(kFnCount + 2)), {static_cast<std::uint8_t>(random.next())}});
      break;
    default: std::swap(graph.nodes.front(), node); break;
  }
}

// Sizes that a computer can hold: what is bigger is right, but not to be run here.
bool is_small(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Value& value : graph.values) {
    if (value.shape.rank > kMaxRank) return true;
    std::int64_t count = 1;
    for (int d = 0; d < value.shape.rank; ++d) {
      if (value.shape.sizes[d] > 4096) return value.kind == ValueKind::Constant;
      count *= value.shape.sizes[d] < 1 ? 1 : value.shape.sizes[d];
    }
    sum += count;
  }
  return sum < 1 << 22;
}

}  // namespace

void test_bad_graphs(std::uint64_t seeds) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    RandomGraph graph;
    const bool quantized = seed % 3 == 0;
    make_random_graph(seed % 50, seed % 2 == 0, &graph, quantized);
    const std::int64_t count = 1 + random.below(2);
    for (std::int64_t i = 0; i < count; ++i) mutate(random, graph.builder.graph);
    // Constants of another size than their data are for the front end to refuse: its blob says how long they are.
    bool fits = is_small(graph.builder.graph);
    RandomGraph original;
    make_random_graph(seed % 50, seed % 2 == 0, &original, quantized);
    for (std::size_t i = 0; fits && i < original.builder.graph.values.size(); ++i) {
      const Value& value = graph.builder.graph.values[i];
      const Value& was = original.builder.graph.values[i];
      if (value.kind != ValueKind::Constant) continue;
      // Nor does anybody but the front end know how many scales there are.
      const Quantization& q = value.quantization;
      const bool scales = q.kind == was.quantization.kind && q.axis == was.quantization.axis;
      fits = was.kind == ValueKind::Constant && value.shape == was.shape && value.dtype == was.dtype &&
             (q.scales == nullptr || scales || value.shape.numel() <= 1);
    }
    if (!fits) continue;
    TestHost host;
    BackendInitContext context = host.init();
    Graph copy = graph.builder.graph;
    Result<Program*> program = compile(context, std::move(copy), {});
    if (!program.ok()) {
      ++refused;
      CHECK(!host.text.empty());
      CHECK(program.error() != Error::Internal);
      if (program.error() == Error::Internal)
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), host.text.c_str());
      continue;
    }
    std::vector<std::unique_ptr<TestTensor>> tensors(graph.builder.graph.inputs + graph.builder.graph.outputs);
    for (const Value& value : graph.builder.graph.values) {
      if (value.kind == ValueKind::Input || value.kind == ValueKind::Output) {
        const std::size_t at = (value.kind == ValueKind::Input ? 0 : graph.builder.graph.inputs) + value.external;
        tensors[at] = std::make_unique<TestTensor>(value.shape, value.dtype);
      }
    }
    std::vector<EValue*> args;
    for (const auto& tensor : tensors) args.push_back(&tensor->value);
    BackendExecuteContext run = host.run();
    const Error error = execute(run, **program, args);
    CHECK(error == Error::Ok || !host.text.empty());
    destroy(*program);
  }
  CHECK(refused * 3 > seeds);
}

}  // namespace wb::engine::test
