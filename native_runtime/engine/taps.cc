#include "engine/taps.h"

#include <algorithm>

#include "engine/compile.h"

namespace wb::engine {
namespace {

bool is_part(const Program& program, const StepTap& tap) { return program.taps[tap.tap].post_count != Tap::kWhole; }

// Bytes that a value takes when it is handed over from memory of its own; numbers, where it has integers.
std::size_t bytes_of_tap(const Program& program, const Tap& tap) {
  const Value& value = program.graph.values[tap.value];
  if (value.quantization.present()) return static_cast<std::size_t>(value.shape.numel()) * sizeof(float);
  return tap.post_count == Tap::kWhole ? 0 : bytes_of(value);
}

// The numbers of a value that is quantized as a whole, or by rows.
void dequantize(const Value& value, const Shape& shape, const std::byte* data, float* numbers) {
  const std::int64_t numel = shape.numel();
  const std::int64_t columns = shape.rank == 0 ? 1 : shape.sizes[shape.rank - 1];
  const auto* rows = reinterpret_cast<const RowQuantization*>(data + (numel + 63) / 64 * 64);
  for (std::int64_t i = 0; i < numel; ++i) {
    RowQuantization q{value.quantization.scale, value.quantization.zero_point};
    if (value.quantization.kind == Quantization::Kind::PerRow) q = rows[i / columns];
    const std::int32_t integer = value.dtype == ScalarType::Byte ? static_cast<std::int32_t>(data[i])
                                                                 : reinterpret_cast<const std::int8_t*>(data)[i];
    numbers[i] = static_cast<float>(integer - q.zero_point) * q.scale;
  }
}

}  // namespace

void make_step_taps(Program& program) {
  std::vector<std::uint32_t> ready(program.graph.values.size(), StepTap::kStart);  // the step after which a value is
  std::uint32_t step = StepTap::kStart;
  std::uint32_t next = 0;
  for (std::uint32_t n = 0; n < program.graph.nodes.size(); ++n) {
    if (next < program.steps.size() && program.steps[next].node == n) step = next++;
    for (const ValueId id : program.graph.nodes[n].outputs) {
      if (id != kNoValue) ready[id] = step;
    }
  }
  for (std::uint32_t t = 0; t < program.taps.size(); ++t) {
    const Tap& tap = program.taps[t];
    program.step_taps.push_back({.tap = t, .step = ready[tap.value], .id = std::to_string(tap.source)});
  }
  std::ranges::stable_sort(program.step_taps, {}, [&](const StepTap& tap) {
    return std::make_pair(static_cast<std::uint32_t>(tap.step + 1), is_part(program, tap) ? 0 : 1);
  });
}

std::byte* Program::data_of(ValueId id) const {
  const Placement& placement = placements[id];
  const void* base = nullptr;
  switch (placement.kind) {
    case Placement::Kind::None: break;
    case Placement::Kind::Input: base = inputs[placement.external].data; break;
    case Placement::Kind::Output: base = outputs[placement.external].data; break;
    case Placement::Kind::Constant: base = graph.values[placement.root].data; break;
    case Placement::Kind::Arena: base = arena; break;
  }
  if (base == nullptr) return nullptr;
  return static_cast<std::byte*>(const_cast<void*>(base)) + placement.offset;
}

TapReader::TapReader(BackendExecuteContext& context, Program& program)
    : context_(context), program_(program), next_(context.wants_outputs() ? 0 : program.step_taps.size()) {
  if (next_ != 0 || !program.tap_memory.empty()) return;
  std::size_t bytes = 1;
  for (const Tap& tap : program.taps) bytes = std::max(bytes, bytes_of_tap(program, tap));
  program.tap_memory.resize(bytes);
}

void TapReader::before_all() { after(StepTap::kStart); }

void TapReader::before(std::uint32_t step) {
  for (; next_ < program_.step_taps.size(); ++next_) {
    const StepTap& tap = program_.step_taps[next_];
    if (tap.step != step || !is_part(program_, tap)) return;
    if (!program_.steps[step].empty) compute(tap);
  }
}

void TapReader::after(std::uint32_t step) {
  for (; next_ < program_.step_taps.size() && program_.step_taps[next_].step == step; ++next_) {
    const StepTap& tap = program_.step_taps[next_];
    const ValueId id = program_.taps[tap.tap].value;
    const Value& value = program_.graph.values[id];
    std::byte* data = program_.data_of(id);
    if (!program_.taps[tap.tap].numbers || !value.quantization.present() || data == nullptr) {
      hand_over(tap, data, value.dtype);
      continue;
    }
    dequantize(value, program_.shapes[id], data, reinterpret_cast<float*>(program_.tap_memory.data()));
    hand_over(tap, program_.tap_memory.data(), ScalarType::Float);
  }
}

void TapReader::compute(const StepTap& tap) {
  const Step& step = program_.steps[tap.step];
  Operands operands = program_.operands(step);
  TensorView out = operands.outputs[0];
  out.data = program_.tap_memory.data();
  if (out.quantization != nullptr) {  // what is quantized afterwards
    out.quantization = nullptr;
    out.dtype = ScalarType::Float;
  }
  operands.outputs = &out;
  RunFault fault;
  step.op->run({.node = program_.graph.nodes[step.node],
                .operands = operands,
                .state = step.state,
                .scratch = program_.arena + step.scratch_offset,
                .pool = program_.pool(),
                .post_count = program_.taps[tap.tap].post_count,
                .fault = &fault});
  hand_over(tap, program_.tap_memory.data(), out.dtype);
}

void TapReader::hand_over(const StepTap& tap, std::byte* data, ScalarType dtype) {
  const Tap& what = program_.taps[tap.tap];
  const Shape& shape = what.reshaped ? what.shape : program_.shapes[what.value];
  std::int32_t sizes[kMaxRank] = {};
  if (what.rank == shape.rank) {
    for (int d = 0; d < shape.rank; ++d) sizes[what.order[d]] = static_cast<std::int32_t>(shape.sizes[d]);
  } else {  // a matrix of all rows that has more dimensions now (Draft::move_taps_reshaped)
    if (what.rank != 2 || shape.rank < 2) return;
    const std::int64_t columns = shape.sizes[shape.rank - 1];
    sizes[1] = static_cast<std::int32_t>(columns);
    sizes[0] = columns == 0 ? 0 : static_cast<std::int32_t>(shape.numel() / columns);
  }
  Tensor tensor;
  tensor.data = data;
  tensor.sizes = sizes;
  tensor.dim_order = what.order;
  tensor.dtype = dtype;
  tensor.rank = what.rank;
  context_.log_output(tap.id.c_str(), static_cast<int>(what.output), tensor);
}

}  // namespace wb::engine
