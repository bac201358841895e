// What loading promises: float16 only at the borders, constants given back once they are packed; and what a step costs.
#include <time.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "engine/describe.h"
#include "engine/passes/draft.h"
#include "engine/test_support.h"

namespace wb::engine::test {
namespace {

// The value of a float16, by its definition.
float half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * static_cast<float>(fraction) / static_cast<float>(1 << 24);
  float value = sign * static_cast<float>(1024 + fraction) / 1024.0F;
  for (int e = 15; e < exponent; ++e) value *= 2;
  for (int e = exponent; e < 15; ++e) value /= 2;
  return value;
}

// All 65536 numbers, constant, in a sum with an input.
struct HalfGraph {
  static constexpr std::int64_t kCount = 65536;
  HalfGraph() : numbers(kCount) {
    for (std::int64_t i = 0; i < kCount; ++i) numbers[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(i);
    const Shape shape = shape_of({kCount});
    x = b.input(shape, ScalarType::Half);
    c = b.temporary(shape, ScalarType::Half);
    b.graph.values[c].kind = ValueKind::Constant;
    b.graph.values[c].data = numbers.data();
    y = b.pointwise(Fn::Add, {x, c}, shape);
    b.graph.values[y].dtype = ScalarType::Half;
    b.output(y);
  }
  std::vector<std::uint16_t> numbers;
  Builder b;
  ValueId x = kNoValue, c = kNoValue, y = kNoValue;
};

void halves_become_floats_inside_and_constants_are_exact() {
  HalfGraph h;
  TestHost host;
  Owned owned;
  const Reporter report{&host.host()};
  Draft draft(report, h.b.graph, owned);
  CHECK(fold_half(draft) == Error::Ok);
  const Graph& graph = h.b.graph;
  CHECK(graph.nodes.size() == 3);
  if (graph.nodes.size() != 3) return;
  CHECK(graph.nodes[0].op == Op::Convert && graph.nodes[0].inputs[0] == h.x);
  CHECK(graph.nodes[1].op == Op::Pointwise && graph.nodes[1].inputs[0] == graph.nodes[0].outputs[0]);
  CHECK(graph.nodes[2].op == Op::Convert && graph.nodes[2].outputs[0] == h.y);
  for (const Value& value : graph.values) {
    const bool border = value.kind == ValueKind::Input || value.kind == ValueKind::Output;
    CHECK((value.dtype == ScalarType::Half) == border);
  }
  const auto* floats = static_cast<const float*>(graph.values[h.c].data);
  int wrong = 0;
  for (std::int64_t i = 0; i < HalfGraph::kCount; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const auto found = std::bit_cast<std::uint32_t>(floats[i]);
    if ((bits >> 10 & 31) == 31) {  // infinities and NaN, with what they carry
      wrong += found != (static_cast<std::uint32_t>(bits & 0x8000) << 16 | 0x7f800000U |
                         static_cast<std::uint32_t>(bits & 1023) << 13);
    } else {
      wrong += found != std::bit_cast<std::uint32_t>(half_value(bits));
    }
  }
  CHECK(wrong == 0);
}

void conversions_between_the_same_type_become_copies() {
  Builder b;
  const Shape shape = shape_of({4});
  const ValueId x = b.input(shape, ScalarType::Half);
  const ValueId wide = b.temporary(shape);
  b.node(Op::Convert, {x}, wide);
  const ValueId y = b.temporary(shape, ScalarType::Half);
  b.node(Op::Convert, {wide}, y);
  b.output(y);
  TestHost host;
  Owned owned;
  const Reporter report{&host.host()};
  Draft draft(report, b.graph, owned);
  CHECK(fold_half(draft) == Error::Ok);
  const auto converts = std::ranges::count(b.graph.nodes, Op::Convert, &Node::op);
  const auto copies = std::ranges::count(b.graph.nodes, Op::Copy, &Node::op);
  CHECK(converts == 2 && copies == 2);
}

// Notes what is given back.
class Released final : public NamedData {
 public:
  [[nodiscard]] Result<std::span<const std::byte>> get(std::string_view /*key*/) const override {
    return Error::NotFound;
  }
  void release(std::span<const std::byte> part) const override { parts.push_back(part); }
  [[nodiscard]] std::int64_t times(const void* data, std::size_t bytes) const {
    return std::ranges::count_if(parts, [&](std::span<const std::byte> part) {
      return static_cast<const void*>(part.data()) == data && part.size() == bytes;
    });
  }
  mutable std::vector<std::span<const std::byte>> parts;
};

void constants_are_given_back_once_when_all_who_read_them_have_packed() {
  Builder b;
  const ValueId x = b.input(shape_of({3, 8}));
  const ValueId once = b.constant(shape_of({8, 8}), Random(1).values(64));
  const ValueId shared = b.constant(shape_of({8, 8}), Random(2).values(64));
  const ValueId mixed = b.constant(shape_of({8, 8}), Random(3).values(64));
  const auto multiply = [&](ValueId a, ValueId weight) {
    const ValueId out = b.temporary(shape_of({3, 8}));
    b.node(Op::MatMul, {a, weight, kNoValue}, out);
    return out;
  };
  const ValueId first = multiply(multiply(multiply(x, once), shared), shared);
  b.output(multiply(first, mixed));
  // As the left side of a sum it is read in each run.
  const ValueId y = b.input(shape_of({8, 8}));
  b.output(b.pointwise(Fn::Add, {y, mixed}, shape_of({8, 8})));
  const void* data[] = {b.graph.values[once].data, b.graph.values[shared].data, b.graph.values[mixed].data};

  TestHost host;
  Released released;
  BackendInitContext context = host.init();
  context.named_data = &released;
  Result<Program*> program = compile(context, std::move(b.graph), {});
  CHECK(program.ok());
  if (!program.ok()) {
    std::printf("%s\n", host.text.c_str());
    return;
  }
  CHECK(released.times(data[0], 256) == 1);
  CHECK(released.times(data[1], 256) == 1);
  CHECK(released.times(data[2], 256) == 0);
  CHECK(released.parts.size() == 2);
  destroy(*program);
}

// A large weight whose columns stand one after the other: parts of it go while others are still to be packed.
void parts_of_a_large_constant_are_given_back_in_order() {
  constexpr std::int64_t kColumns = 128;
  constexpr std::int64_t kRows = 2048;
  Builder b;
  const ValueId x = b.input(shape_of({1, kRows}));
  const ValueId weight = b.constant(shape_of({kColumns, kRows}), Random(4).values(kColumns * kRows));
  const ValueId out = b.temporary(shape_of({1, kColumns}));
  b.node(Op::MatMul, {x, weight, kNoValue}, out).attributes.transpose_b = true;
  b.output(out);
  const auto* data = static_cast<const std::byte*>(b.graph.values[weight].data);
  TestHost host;
  Released released;
  BackendInitContext context = host.init();
  context.named_data = &released;
  Result<Program*> program = compile(context, std::move(b.graph), {});
  CHECK(program.ok());
  if (!program.ok()) return;
  CHECK(released.parts.size() > 2);
  std::size_t next = 0;
  for (std::size_t i = 0; i + 1 < released.parts.size(); ++i) {
    CHECK(released.parts[i].data() == data + next);
    next += released.parts[i].size();
  }
  CHECK(next == sizeof(float) * kColumns * kRows);
  CHECK(released.times(data, next) == 1);  // pages of which two parts had some
  destroy(*program);
}

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Of an execution of `count` steps that do nearly nothing; the shortest of many.
std::int64_t chain_ns(int count) {
  Builder b;
  const Shape shape = shape_of({4});
  ValueId x = b.input(shape);
  for (int i = 0; i < count; ++i) x = b.pointwise(Fn::Abs, {x}, shape);
  b.output(x);
  TestHost host;
  BackendInitContext context = host.init();
  Options options;
  options.fuse = false;
  Result<Program*> program = compile(context, std::move(b.graph), options);
  CHECK(program.ok());
  if (!program.ok()) return 0;
  const std::string text = describe(**program);
  std::size_t steps = 0;
  for (std::size_t at = text.find("abs"); at != std::string::npos; at = text.find("abs", at + 1)) ++steps;
  CHECK(steps >= static_cast<std::size_t>(count));
  TestTensor in(shape);
  TestTensor out(shape);
  EValue* args[] = {&in.value, &out.value};
  BackendExecuteContext run = host.run();
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t start = now();
    if (execute(run, **program, args) != Error::Ok) ++failures;
    best = std::min(best, now() - start);
  }
  destroy(*program);
  return best;
}

void a_step_costs_little() {
  constexpr int kFew = 100;
  constexpr int kMany = 600;
  const std::int64_t few = chain_ns(kFew);
  const std::int64_t step = (chain_ns(kMany) - few) / (kMany - kFew);
  std::printf("a step: %lld ns; an execution: %lld ns\n", static_cast<long long>(step),
              static_cast<long long>(few - kFew * step));
#if defined(__SANITIZE_ADDRESS__)
  CHECK(step < 5000);
#else
  CHECK(step < 400);                 // measured: about a fifth of that
  CHECK(few - kFew * step < 20000);  // arguments checked and bound
#endif
}

}  // namespace

void test_load() {
  halves_become_floats_inside_and_constants_are_exact();
  conversions_between_the_same_type_become_copies();
  constants_are_given_back_once_when_all_who_read_them_have_packed();
  parts_of_a_large_constant_are_given_back_in_order();
  a_step_costs_little();
}

}  // namespace wb::engine::test
