// Runs single operators from outside, for tests and measurements: a C interface to the rows of the table, without a
// graph. Scratch memory and outputs get guard bytes, so that a test sees what an operator writes past their ends.
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "engine/operator.h"

namespace wb::engine {
namespace {

constexpr std::size_t kGuard = 64;
constexpr int kGuardByte = 0xA5;
constexpr std::size_t kText = 512;

// Of trials: whether there are any, times that count instead of those of the clock, what was measured.
struct Trials {
  bool wanted = false;
  std::vector<std::pair<std::string, std::uint64_t>> injected;
  std::string log;  // "<method>\t<ns>\n"
};
Trials trials;

class HarnessSetup final : public Setup {
 public:
  explicit HarnessSetup(char* text) : text_(text) {}
  virtual ~HarnessSetup() {
    for (void* memory : memory_) std::free(memory);
  }
  HarnessSetup(const HarnessSetup&) = delete;
  HarnessSetup& operator=(const HarnessSetup&) = delete;

  void* allocate(std::size_t bytes) override {
    void* memory = std::aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (memory != nullptr) memory_.push_back(memory);
    return memory;
  }
  void* allocate_packed(const void* /*constant*/, std::uint64_t /*format*/, std::size_t bytes, bool* ready) override {
    *ready = false;
    return allocate(bytes);
  }
  [[nodiscard]] bool trial() const override { return trials.wanted; }
  [[nodiscard]] std::uint64_t measured(const char* /*layer*/, const char* method, std::uint64_t ns) override {
    trials.log += std::string(method) + "\t" + std::to_string(ns) + "\n";
    for (const auto& [name, instead] : trials.injected) {
      if (name == method) return instead;
    }
    return ns;
  }
  Error fail(Error error, const char* format, ...) override {
    std::va_list args;
    va_start(args, format);
    std::vsnprintf(text_, kText, format, args);
    va_end(args);
    return error;
  }

 private:
  char* text_;
  std::vector<void*> memory_;
};

// A number of Attributes by its name.
struct Field {
  const char* name;
  void (*set)(Attributes& attributes, int index, double value);
};
#define WB_FIELD(path) {#path, [](Attributes& a, int, double value) { a.path = static_cast<decltype(a.path)>(value); }}
#define WB_ITEM(path) \
  {#path, [](Attributes& a, int i, double value) { a.path[i] = static_cast<std::decay_t<decltype(a.path[0])>>(value); }}
#define WB_HEADS(field)                                                                                        \
  {"head_orders." #field, [](Attributes& a, int i, double value) {                                             \
     a.head_orders[i].field = static_cast<decltype(a.head_orders[i].field)>(static_cast<std::int64_t>(value)); \
   }}
constexpr Field kFields[] = {
    WB_FIELD(window.kernel_h),
    WB_FIELD(window.kernel_w),
    WB_FIELD(window.stride_h),
    WB_FIELD(window.stride_w),
    WB_FIELD(window.dilation_h),
    WB_FIELD(window.dilation_w),
    WB_FIELD(window.pad_top),
    WB_FIELD(window.pad_bottom),
    WB_FIELD(window.pad_left),
    WB_FIELD(window.pad_right),
    WB_FIELD(window.ceil_mode),
    WB_FIELD(window.count_include_pad),
    WB_FIELD(window.divisor),
    WB_FIELD(weight_order.cout),
    WB_FIELD(weight_order.cin),
    WB_FIELD(weight_order.h),
    WB_FIELD(weight_order.w),
    WB_FIELD(groups),
    WB_FIELD(output_padding_h),
    WB_FIELD(output_padding_w),
    WB_FIELD(transpose_b),
    WB_FIELD(reduce),
    WB_FIELD(mask),
    WB_FIELD(keep),
    WB_FIELD(axis),
    WB_FIELD(log),
    WB_FIELD(largest),
    WB_FIELD(correction),
    WB_FIELD(eps),
    WB_FIELD(scale),
    WB_FIELD(causal),
    WB_HEADS(kind),
    WB_HEADS(count),
    WB_HEADS(size),
    WB_HEADS(begin),
    WB_FIELD(layers),
    WB_FIELD(hidden),
    WB_FIELD(bidirectional),
    WB_FIELD(batch_first),
    WB_ITEM(permutation),
    WB_FIELD(rank),
    WB_FIELD(begin),
    WB_FIELD(end),
    WB_FIELD(step),
    WB_ITEM(before),
    WB_ITEM(after),
    WB_FIELD(pad_mode),
    WB_FIELD(fill),
    WB_FIELD(upsample_mode),
    WB_FIELD(align_corners),
    WB_FIELD(scale_h),
    WB_FIELD(scale_w),
    WB_FIELD(out_h),
    WB_FIELD(out_w),
};
#undef WB_FIELD
#undef WB_ITEM
#undef WB_HEADS

struct Harness {
  Node node;
  std::vector<TensorView> inputs, outputs, post_inputs;
  std::deque<Quantization> quantizations;

  std::vector<TensorView>& list(int role) { return role == 0 ? inputs : role == 1 ? outputs : post_inputs; }

  // The upper bounds of the sizes are the sizes themselves. `data`: of all, else of constants only.
  [[nodiscard]] Operands operands(std::vector<TensorView>& views, bool data) const {
    views = inputs;
    views.insert(views.end(), outputs.begin(), outputs.end());
    views.insert(views.end(), post_inputs.begin(), post_inputs.end());
    for (TensorView& view : views) {
      if (!data && !view.constant) view.data = nullptr;
    }
    Operands result;
    result.inputs = views.data();
    result.outputs = views.data() + inputs.size();
    result.post_inputs = views.data() + inputs.size() + outputs.size();
    result.input_count = static_cast<std::uint32_t>(inputs.size());
    result.output_count = static_cast<std::uint32_t>(outputs.size());
    result.post_input_count = static_cast<std::uint32_t>(post_inputs.size());
    return result;
  }
};

Error run(Harness& harness, HarnessSetup& setup, int times, double* seconds) {
  const Operator* op = find_operator(harness.node.op);
  if (op == nullptr) return setup.fail(Error::NotSupported, "no such operator");
  Pool& pool = Pool::instance();
  std::vector<TensorView> views;
  PrepareContext prepare{setup, harness.node, harness.operands(views, false), nullptr, pool.threads()};
  WB_TRY(op->prepare(prepare));
  ShapeContext shape{setup, harness.node, prepare.operands, prepare.state, pool.threads()};
  WB_TRY(op->shape(shape));
  auto* scratch = static_cast<std::byte*>(setup.allocate(shape.scratch + kGuard));
  if (scratch == nullptr) return setup.fail(Error::MemoryAllocationFailed, "no memory");
  std::memset(scratch + shape.scratch, kGuardByte, kGuard);
  const Operands operands = harness.operands(views, true);
  RunFault fault;
  const RunContext context{
      harness.node, operands, shape.state, scratch, pool, static_cast<std::uint32_t>(harness.node.post.size()), &fault};
  for (int i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    op->run(context);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (seconds != nullptr && (i == 0 || taken.count() < *seconds)) *seconds = taken.count();
  }
  for (std::size_t i = 0; i < kGuard; ++i) {
    if (scratch[shape.scratch + i] != static_cast<std::byte>(kGuardByte)) {
      return setup.fail(Error::Internal, "wrote past the end of its scratch memory of %zu bytes", shape.scratch);
    }
  }
  if (fault.raised) {
    return setup.fail(Error::InvalidArgument, "index %lld of %lld", static_cast<long long>(fault.found),
                      static_cast<long long>(fault.limit));
  }
  return Error::Ok;
}

}  // namespace
}  // namespace wb::engine

extern "C" {
#pragma GCC visibility push(default)
using wb::engine::Harness;

Harness* wb_engine_node(int op) {
  auto* harness = new Harness;
  harness->node.op = static_cast<wb::engine::Op>(op);
  return harness;
}
void wb_engine_free(Harness* harness) { delete harness; }

// 0 when there is no such attribute.
int wb_engine_attribute(Harness* harness, const char* name, int index, double value) {
  Harness& h = *harness;
  for (const wb::engine::Field& field : wb::engine::kFields) {
    if (std::strcmp(field.name, name) != 0) continue;
    field.set(h.node.attributes, index, value);
    return 1;
  }
  return 0;
}

void wb_engine_size(Harness* harness, int index, std::int64_t value, int from_input) {
  wb::engine::SizeRule& rule = harness->node.attributes.sizes[index];
  rule.value = value;
  rule.from_input = static_cast<std::int8_t>(from_input);
}

void wb_engine_step(Harness* harness, int fn, int x, int y, int z, float a, float b) {
  wb::engine::PointwiseStep step;
  step.fn = static_cast<wb::engine::Fn>(fn);
  step.operands[0] = static_cast<std::uint8_t>(x);
  step.operands[1] = static_cast<std::uint8_t>(y);
  step.operands[2] = static_cast<std::uint8_t>(z);
  step.a = a;
  step.b = b;
  harness->node.post.push_back(step);
}

// role: 0 input, 1 output, 2 post input. present: 0 for an optional one that is left out.
void wb_engine_tensor(Harness* harness, int role, int dtype, int rank, const std::int64_t* sizes, void* data,
                      int constant, int present) {
  wb::engine::TensorView view;
  view.data = data;
  view.dtype = static_cast<wb::ScalarType>(dtype);
  view.shape.rank = static_cast<std::uint8_t>(rank);
  for (int d = 0; d < rank; ++d) view.shape.sizes[d] = sizes[d];
  view.constant = constant != 0;
  view.present = present != 0;
  harness->list(role).push_back(view);
  auto& ids = role == 0 ? harness->node.inputs : role == 1 ? harness->node.outputs : harness->node.post_inputs;
  ids.push_back(present != 0 ? static_cast<wb::engine::ValueId>(ids.size()) : wb::engine::kNoValue);
}

// How the integers of the last tensor of that role stand for numbers. The arrays stay the caller's; null is none.
void wb_engine_quantize(Harness* harness, int role, int kind, int bits, int axis, std::int64_t group, float scale,
                        int zero_point, const float* scales, const std::int32_t* zero_points) {
  wb::engine::Quantization& q = harness->quantizations.emplace_back();
  q.kind = static_cast<wb::engine::Quantization::Kind>(kind);
  q.bits = static_cast<std::uint8_t>(bits);
  q.axis = axis;
  q.group = group;
  q.scale = scale;
  q.zero_point = zero_point;
  q.scales = scales;
  q.zero_points = zero_points;
  harness->list(role).back().quantization = &q;
}

// Would the operator take the step into its epilogue, after those that the node has?
int wb_engine_fuses(Harness* harness, int fn) {
  const wb::engine::Operator* op = wb::engine::find_operator(harness->node.op);
  wb::engine::PointwiseStep step;
  step.fn = static_cast<wb::engine::Fn>(fn);
  return op != nullptr && op->fuses != nullptr && op->fuses(harness->node, step) ? 1 : 0;
}

// From now on: are methods tried? Forgets what was injected and measured.
void wb_engine_trial(int wanted) {
  wb::engine::trials = {};
  wb::engine::trials.wanted = wanted != 0;
}
void wb_engine_inject(const char* method, std::int64_t ns) {
  wb::engine::trials.injected.emplace_back(method, static_cast<std::uint64_t>(ns));
}
const char* wb_engine_measured() { return wb::engine::trials.log.c_str(); }

void wb_engine_threads(int count) { wb::engine::Pool::instance().set_threads(count); }

// Prepares, then runs `times`. Returns the wb::Error; `text` (512 bytes) says what was wrong; `seconds` is the
// shortest run's time.
int wb_engine_run(Harness* harness, int times, double* seconds, char* text) {
  wb::engine::HarnessSetup setup(text);
  return static_cast<int>(wb::engine::run(*harness, setup, times, seconds));
}
#pragma GCC visibility pop
}
