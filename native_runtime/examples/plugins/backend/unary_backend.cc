// A backend that lives outside of the workbench: this file, the public headers, and nothing else.
//
//   c++ -std=c++20 -shared -fPIC -I <workbench.runtime.include_dir()> unary_backend.cc -o libunary_backend.so
//
// It computes trees of unary operators on float32 tensors of any shape, element by element. The blob, made by
// unary_backend/__init__.py, is little-endian:
//
//   u32 magic "UNRY", u32 version, u32 operator count, u32 output count
//   operators: u32 opcode, u32 operand, f32 parameter, u32 0
//   outputs:   u32 value
//
// Value 0 is the input; operator k makes value k + 1. The operators run fused, so the trace gets one event for all of
// them, with the debug identifier 0.
#include <time.h>
#include <workbench_native/core/plugin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>

namespace {

using wb::Error;

constexpr std::uint32_t kMagic = 0x59524e55;  // "UNRY"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kMaxOperators = 63;

enum class Opcode : std::uint32_t { Neg, Abs, Relu, LeakyRelu, Tanh };
constexpr std::uint32_t kOpcodeCount = 5;

struct Header {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t operator_count;
  std::uint32_t output_count;
};

struct Operator {
  Opcode opcode;
  std::uint32_t operand;
  float parameter;
  std::uint32_t reserved;
};

struct Tree {
  Header header;
  Operator operators[kMaxOperators];
  std::uint32_t outputs[kMaxOperators + 1];
};

float apply(const Operator& op, float x) {
  switch (op.opcode) {
    case Opcode::Neg: return -x;
    case Opcode::Abs: return std::fabs(x);
    case Opcode::Relu: return x > 0.0F ? x : (x == x ? 0.0F : x);
    case Opcode::LeakyRelu: return x > 0.0F ? x : op.parameter * x;
    case Opcode::Tanh: return std::tanh(x);
  }
  return x;
}

// The clock of the trace. A plug-in links against nothing, so it brings its own.
std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

class UnaryBackend final : public wb::Backend {
 public:
  [[nodiscard]] const char* id() const override { return "UnaryBackend"; }

  Error init(wb::BackendInitContext& context, std::span<const std::byte> blob, std::span<const wb::CompileSpecRef>,
             wb::DelegateHandle** handle) override {
    void* memory = context.allocate(sizeof(Tree), alignof(Tree));
    if (memory == nullptr) return context.fail(Error::MemoryAllocationFailed, "no memory for the delegate");
    Tree& tree = *new (memory) Tree();
    WB_TRY(read(context, blob, tree));
    WB_TRY(check(context, tree));
    context.release_processed = true;
    *handle = &tree;
    return Error::Ok;
  }

  Error execute(wb::BackendExecuteContext& context, wb::DelegateHandle* handle,
                std::span<wb::EValue* const> args) override {
    const Tree& tree = *static_cast<const Tree*>(handle);
    const std::uint32_t count = tree.header.output_count;
    if (args.size() != std::size_t{count} + 1) {
      return context.fail(Error::InvalidArgument, "expected 1 input and %u outputs, found %zu arguments", count,
                          args.size());
    }
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!args[i]->is_tensor() || args[i]->tensor().dtype != wb::ScalarType::Float) {
        return context.fail(Error::InvalidType, "argument %zu is no float32 tensor", i);
      }
    }
    const wb::Tensor& input = args[0]->tensor();
    float* outputs[kMaxOperators + 1];
    for (std::uint32_t i = 0; i < count; ++i) {
      wb::Tensor& output = args[i + 1]->tensor();
      WB_TRY(context.resize(output, input.shape()));  // shapes may change from one execution to the next
      if (std::memcmp(output.dim_order, input.dim_order, input.rank) != 0) {
        return context.fail(Error::InvalidArgument, "output %u has another dim order than the input", i);
      }
      outputs[i] = output.mutable_data<float>();
    }
    const std::uint64_t start = context.trace == nullptr ? 0 : now_ns();
    const float* data = input.const_data<float>();
    for (std::int64_t n = 0, size = input.numel(); n < size; ++n) {
      float values[kMaxOperators + 1] = {data[n]};
      for (std::uint32_t k = 0; k < tree.header.operator_count; ++k) {
        values[k + 1] = apply(tree.operators[k], values[tree.operators[k].operand]);
      }
      for (std::uint32_t i = 0; i < count; ++i) outputs[i][n] = values[tree.outputs[i]];
    }
    if (context.trace != nullptr) context.log("unary", 0, start, now_ns());
    return Error::Ok;
  }

 private:
  static Error read(const wb::BackendInitContext& context, std::span<const std::byte> blob, Tree& tree) {
    if (blob.size() < sizeof tree.header) return context.fail(Error::InvalidProgram, "the blob ends in its header");
    std::memcpy(&tree.header, blob.data(), sizeof tree.header);
    const Header& header = tree.header;
    if (header.magic != kMagic || header.version != kVersion) {
      return context.fail(Error::DelegateInvalidCompatibility, "expected version %u of the blob, found %u", kVersion,
                          header.version);
    }
    if (header.operator_count > kMaxOperators || header.output_count > kMaxOperators + 1) {
      return context.fail(Error::InvalidProgram, "%u operators and %u outputs are more than %u", header.operator_count,
                          header.output_count, kMaxOperators);
    }
    const std::size_t operators = header.operator_count * sizeof(Operator);
    const std::size_t outputs = header.output_count * sizeof(std::uint32_t);
    if (blob.size() != sizeof header + operators + outputs) {
      return context.fail(Error::InvalidProgram, "expected %zu bytes, found %zu", sizeof header + operators + outputs,
                          blob.size());
    }
    std::memcpy(tree.operators, blob.data() + sizeof header, operators);
    std::memcpy(tree.outputs, blob.data() + sizeof header + operators, outputs);
    return Error::Ok;
  }

  static Error check(const wb::BackendInitContext& context, const Tree& tree) {
    for (std::uint32_t k = 0; k < tree.header.operator_count; ++k) {
      const Operator& op = tree.operators[k];
      if (static_cast<std::uint32_t>(op.opcode) >= kOpcodeCount || op.operand > k) {
        return context.fail(Error::InvalidProgram, "operator %u: opcode %u on value %u", k,
                            static_cast<unsigned>(op.opcode), op.operand);
      }
    }
    for (std::uint32_t i = 0; i < tree.header.output_count; ++i) {
      if (tree.outputs[i] > tree.header.operator_count) {
        return context.fail(Error::InvalidProgram, "output %u: there is no value %u", i, tree.outputs[i]);
      }
    }
    return Error::Ok;
  }
};

UnaryBackend backend;
wb::Backend* const backends[] = {&backend};
const wb::Plugin plugin = {.name = "unary backend example", .backends = backends, .backend_count = 1};

}  // namespace

WB_PLUGIN_EXPORT const wb::Plugin* workbench_plugin() { return &plugin; }
