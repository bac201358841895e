// `CpuBackend`: runs a delegated part of a program on the engine. The ahead-of-time half is workbench/backends/cpu.
#include <cstdint>
#include <new>

#include "backends/cpu/blob.h"
#include "core/register.h"
#include "engine/engine.h"

namespace wb::cpu {
namespace {

struct Delegate {
  engine::Program* program = nullptr;
  std::uint32_t inputs = 0, outputs = 0;     // arguments of the call
  std::uint32_t tensors = 0;                 // those that the engine takes
  const std::uint32_t* arguments = nullptr;  // which ones
  EValue** passed = nullptr;                 // the arguments of the engine, filled in at each execution
};

// The compile specs `fuse` and `trial`: one byte, 0 or 1.
Result<engine::Options> options_of(const BackendInitContext& context, std::span<const CompileSpecRef> specs) {
  engine::Options options;
  for (const CompileSpecRef& spec : specs) {
    bool* flag = spec.key == "fuse" ? &options.fuse : spec.key == "trial" ? &options.trial : nullptr;
    const int size = static_cast<int>(spec.key.size());
    if (flag == nullptr) {
      return context.fail(Error::InvalidArgument, "compile spec %.*s: expected fuse or trial", size, spec.key.data());
    }
    if (spec.value.size() != 1 || static_cast<unsigned>(spec.value[0]) > 1) {
      return context.fail(Error::InvalidArgument, "compile spec %.*s: expected one byte, 0 or 1", size,
                          spec.key.data());
    }
    *flag = spec.value[0] != std::byte{0};
  }
  return options;
}

class CpuBackend final : public Backend {
 public:
  [[nodiscard]] const char* id() const override { return "CpuBackend"; }

  Error init(BackendInitContext& context, std::span<const std::byte> processed,
             std::span<const CompileSpecRef> compile_specs, DelegateHandle** handle) override {
    WB_ASSIGN(const engine::Options options, options_of(context, compile_specs));
    WB_ASSIGN(Blob blob, read_blob(context, processed));
    WB_ASSIGN(Delegate * delegate, make_delegate(context, blob));
    WB_ASSIGN(delegate->program, engine::compile(context, std::move(blob.graph), options));
    context.release_processed = !blob.holds_data;
    *handle = delegate;
    return Error::Ok;
  }

  Error execute(BackendExecuteContext& context, DelegateHandle* handle, std::span<EValue* const> args) override {
    const Delegate& delegate = *static_cast<Delegate*>(handle);
    if (args.size() != std::size_t{delegate.inputs} + delegate.outputs) {
      return context.fail(Error::InvalidArgument, "expected %u inputs and %u outputs, found %zu arguments",
                          delegate.inputs, delegate.outputs, args.size());
    }
    for (std::uint32_t i = 0; i < delegate.tensors; ++i) {
      EValue* argument = args[delegate.arguments[i]];
      if (!argument->is_tensor()) {
        return context.fail(Error::InvalidType, "argument %u: expected Tensor, found %s", delegate.arguments[i],
                            name_of(argument->tag));
      }
      delegate.passed[i] = argument;
    }
    return engine::execute(context, *delegate.program, {delegate.passed, delegate.tensors});
  }

  void destroy(DelegateHandle* handle) override { engine::destroy(static_cast<Delegate*>(handle)->program); }

 private:
  static Result<Delegate*> make_delegate(const BackendInitContext& context, const Blob& blob) {
    const std::size_t tensors = blob.arguments.size();
    void* memory = context.allocate(sizeof(Delegate));
    auto* arguments = static_cast<std::uint32_t*>(context.allocate((tensors + 1) * sizeof(std::uint32_t)));
    auto* passed = static_cast<EValue**>(context.allocate((tensors + 1) * sizeof(EValue*)));
    if (memory == nullptr || arguments == nullptr || passed == nullptr) {
      return context.fail(Error::MemoryAllocationFailed, "no memory for a delegate of %zu arguments", tensors);
    }
    for (std::size_t i = 0; i < tensors; ++i) arguments[i] = blob.arguments[i];
    return new (memory)
        Delegate{nullptr, blob.inputs, blob.outputs, static_cast<std::uint32_t>(tensors), arguments, passed};
  }
};

constinit CpuBackend cpu_backend;

WB_REGISTER_BACKEND(cpu_backend);

}  // namespace
}  // namespace wb::cpu
