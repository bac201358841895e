// `BackendWithCompilerDemo` and `AddMulBackendDemo`: the native halves of the backends in workbench/backends/demo. They
// differ in the operators that they take.
#include <array>
#include <cstdint>

#include "backends/demo/blob.h"
#include "core/register.h"

namespace wb::demo {
namespace {

constexpr std::uint32_t bit(Opcode opcode) { return 1U << static_cast<unsigned>(opcode); }

class DemoBackend final : public Backend {
 public:
  constexpr DemoBackend(const char* id, std::uint32_t opcodes) : id_(id), opcodes_(opcodes) {}

  [[nodiscard]] const char* id() const override { return id_; }

  Error init(BackendInitContext& context, std::span<const std::byte> processed,
             std::span<const CompileSpecRef> compile_specs, DelegateHandle** handle) override {
    WB_ASSIGN(const int max_rank, max_rank_of(context, compile_specs));
    WB_ASSIGN(Plan * plan, build_plan(context, processed, opcodes_, max_rank));
    context.release_processed = true;  // the plan holds copies
    *handle = plan;
    return Error::Ok;
  }

  Error execute(BackendExecuteContext& context, DelegateHandle* handle, std::span<EValue* const> args) override {
    const Plan& plan = *static_cast<Plan*>(handle);
    const std::uint32_t arguments = plan.input_count + plan.output_count;
    if (args.size() != arguments) {
      return context.fail(Error::InvalidArgument, "expected %u inputs and %u outputs, found %zu arguments",
                          plan.input_count, plan.output_count, args.size());
    }
    for (std::uint32_t i = 0; i < arguments; ++i) WB_TRY(bind(context, plan.values[i], i, *args[i]));
    for (std::uint32_t i = 0; i < plan.instruction_count; ++i) {
      const BlobInstruction& instruction = plan.instructions[i];
      const bool traced = context.trace != nullptr && instruction.debug_id >= 0;
      const std::uint64_t start = traced ? now_ns() : 0;
      run(plan, instruction);
      if (!traced) continue;
      context.log(name_of(instruction.opcode), instruction.debug_id, start, now_ns());
      if (context.wants_outputs()) log_result(context, plan.values[instruction.result], instruction.debug_id);
    }
    return Error::Ok;
  }

 private:
  // The compile spec `max_value`: the largest rank that a value may have, one little-endian number.
  static Result<int> max_rank_of(const BackendInitContext& context, std::span<const CompileSpecRef> specs) {
    for (const CompileSpecRef& spec : specs) {
      if (spec.key != "max_value") continue;
      std::uint64_t value = 0;
      if (spec.value.size() > sizeof value) {
        return context.fail(Error::InvalidArgument, "compile spec max_value has %zu bytes", spec.value.size());
      }
      for (std::size_t i = 0; i < spec.value.size(); ++i) {
        value |= static_cast<std::uint64_t>(spec.value[i]) << (8 * i);
      }
      if (value < 1 || value > kMaxBlobRank) {
        return context.fail(Error::InvalidArgument, "compile spec max_value: expected 1 to %d, found %llu",
                            kMaxBlobRank, static_cast<unsigned long long>(value));
      }
      return static_cast<int>(value);
    }
    return kDefaultMaxRank;
  }

  // Checks an argument against what the plan was made for, and notes where its data stands.
  static Error bind(const BackendExecuteContext& context, Value& value, std::uint32_t index, const EValue& argument) {
    if (!argument.is_tensor()) {
      return context.fail(Error::InvalidType, "argument %u: expected Tensor, found %s", index,
                          wb::name_of(argument.tag));
    }
    Tensor& tensor = argument.tensor();
    if (tensor.dtype != ScalarType::Float) {
      return context.fail(Error::InvalidType, "argument %u: expected float32, found %s", index,
                          wb::name_of(tensor.dtype));
    }
    if (value.kind == ValueKind::Output) WB_TRY(context.resize(tensor, {value.sizes, value.rank}));
    bool same = tensor.rank == value.rank && tensor.is_contiguous();
    for (int d = 0; same && d < value.rank; ++d) same = tensor.sizes[d] == value.sizes[d];
    if (!same) {
      return context.fail(Error::InvalidArgument,
                          "argument %u: its shape or dim order is not the one it was compiled for", index);
    }
    value.data = tensor.mutable_data<float>();
    if (value.data == nullptr && value.numel != 0) {
      return context.fail(Error::InvalidArgument, "argument %u has no memory", index);
    }
    return Error::Ok;
  }

  static void log_result(const BackendExecuteContext& context, Value& result, std::int32_t debug_id) {
    static constexpr std::array<std::uint8_t, kMaxBlobRank> kContiguous = [] {
      std::array<std::uint8_t, kMaxBlobRank> order{};
      for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<std::uint8_t>(d);
      return order;
    }();
    Tensor tensor;
    tensor.data = result.data;
    tensor.sizes = result.sizes;
    tensor.dim_order = kContiguous.data();
    tensor.rank = result.rank;
    context.log_output(debug_id, 0, tensor);
  }

  const char* id_;
  std::uint32_t opcodes_;
};

constinit DemoBackend with_compiler{"BackendWithCompilerDemo", bit(Opcode::Copy) | bit(Opcode::Sin) | bit(Opcode::Add) |
                                                                   bit(Opcode::Mm) | bit(Opcode::Linear)};
constinit DemoBackend add_mul{"AddMulBackendDemo",
                              bit(Opcode::Copy) | bit(Opcode::Add) | bit(Opcode::Mul) | bit(Opcode::Mm)};

WB_REGISTER_BACKEND(with_compiler);
WB_REGISTER_BACKEND(add_mul);

}  // namespace
}  // namespace wb::demo
