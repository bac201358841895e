// Kernels and delegates of a method: found, then prepared.
#include <new>

#include "executor/loader.h"
#include "executor/registry.h"

namespace wb {

bool MethodLoader::is_constant(const EValue& value) const {
  const std::uint8_t flags = method_.plan_.flags[index_of(value)];
  switch (value.tag) {
    case Tag::None:
    case Tag::String:
    case Tag::DoubleList:
    case Tag::BoolList: return true;
    case Tag::Int:
    case Tag::Double:
    case Tag::Bool: return (flags & kWritten) == 0;
    case Tag::Tensor: return (flags & kStoredData) != 0 && (flags & kWritten) == 0;
    case Tag::IntList: return value.payload.int_list.literal;
    case Tag::TensorList:
    case Tag::OptionalTensorList: break;
  }
  for (std::uint32_t i = 0; i < value.payload.tensor_list.size; ++i) {
    const EValue& item = *value.payload.tensor_list.items[i];
    if (item.is_tensor() && !is_constant(item)) return false;
  }
  return true;
}

Error MethodLoader::find_kernels() {
  const Registry& registry = Registry::instance();
  // Operators are few and instructions many: each name is looked up once.
  const auto* operators = method_.serialized_->operators();
  std::span<const Kernel*> kernels;
  WB_TRY(make_span(count(operators), &kernels, "operators"));
  const auto* source = method_.serialized_->chains()->Get(0)->instructions();
  Error missing = Error::Ok;
  for (std::uint32_t i = 0; i < method_.plan_.instructions.size(); ++i) {
    Instruction& instruction = method_.plan_.instructions[i];
    if (instruction.kind != InstructionKind::Kernel) continue;
    const auto op = static_cast<std::uint32_t>(source->Get(i)->instr_args_as_KernelCall()->op_index());
    if (kernels[op] == nullptr) kernels[op] = registry.kernel(instruction.name);
    if (kernels[op] == nullptr) {
      // All that are missing are named, each once.
      static constexpr Kernel kMissing{"", nullptr, nullptr};
      method_.diagnostic_.add("no kernel for %s (first needed by instruction %u)", instruction.name, i);
      kernels[op] = &kMissing;
      missing = Error::OperatorMissing;
    }
    instruction.execute = kernels[op]->execute;
    auto* memory = method_.allocator_.array<KernelContext>(1);
    auto* constant = method_.allocator_.array<bool>(instruction.arg_count);
    if (memory == nullptr || constant == nullptr) return out_of_memory("kernel calls");
    for (std::uint32_t k = 0; k < instruction.arg_count; ++k) {
      constant[k] = k < instruction.first_output && is_constant(*instruction.args[k]);
    }
    instruction.context = new (memory)
        KernelContext(instruction.name, instruction.args, constant, instruction.arg_count, &method_.host_);
  }
  if (missing != Error::Ok) return missing;
  return prepare_kernels();
}

Error MethodLoader::prepare_kernels() {
  const Registry& registry = Registry::instance();
  const Kernel* last = nullptr;
  for (std::uint32_t i = 0; i < method_.plan_.instructions.size(); ++i) {
    Instruction& instruction = method_.plan_.instructions[i];
    if (instruction.kind != InstructionKind::Kernel) continue;
    if (last == nullptr || last->execute != instruction.execute || std::string_view(last->name) != instruction.name) {
      last = registry.kernel(instruction.name);
    }
    const Error error = last == nullptr ? Error::OperatorMissing : last->prepare(*instruction.context);
    if (error != Error::Ok) {
      method_.diagnostic_.add("while preparing instruction %u (%s)", i, instruction.name);
      return error;
    }
  }
  if (method_.scratch_wanted_ == 0) return Error::Ok;
  if (!method_.scratch_.reserve(method_.scratch_wanted_)) {
    method_.diagnostic_.add("no memory for %zu bytes of scratch", method_.scratch_wanted_);
    return Error::MemoryAllocationFailed;
  }
  for (Instruction& instruction : method_.plan_.instructions) {
    if (instruction.kind != InstructionKind::Kernel) continue;
    instruction.context->scratch = method_.scratch_.data();
    instruction.context->scratch_size = method_.scratch_.size();
  }
  return Error::Ok;
}

namespace {

// The program's own named data, then that of the data file.
class ChainedData final : public NamedData {
 public:
  ChainedData(const NamedData& first, const NamedData* second) : first_(first), second_(second) {}

  [[nodiscard]] Result<std::span<const std::byte>> get(std::string_view key) const override {
    auto found = first_.get(key);
    return found.ok() || second_ == nullptr ? found : second_->get(key);
  }

 private:
  const NamedData& first_;
  const NamedData* second_;
};

}  // namespace

Error MethodLoader::init_delegates() {
  const std::uint32_t delegates = count(method_.serialized_->delegates());
  WB_TRY(make_span(delegates, &method_.plan_.delegates, "delegates"));
  for (std::uint32_t i = 0; i < delegates; ++i) {
    if (const Error error = init_delegate(i); error != Error::Ok) {
      method_.diagnostic_.add("while loading delegate %u (%s)", i,
                              method_.serialized_->delegates()->Get(i)->id()->c_str());
      return error;
    }
  }
  return Error::Ok;
}

Error MethodLoader::init_delegate(std::uint32_t index) {
  const fb::BackendDelegate& source = *method_.serialized_->delegates()->Get(index);
  Delegate& delegate = method_.plan_.delegates[index];
  delegate.backend = Registry::instance().backend(view(source.id()));
  if (delegate.backend == nullptr) {
    method_.diagnostic_.add("no backend %s: it is not compiled in, and no plug-in that was loaded has it",
                            source.id()->c_str());
    return Error::NotFound;
  }
  if (!delegate.backend->is_available()) {
    method_.diagnostic_.add("backend %s is not available on this machine", source.id()->c_str());
    return Error::NotSupported;
  }
  std::span<CompileSpecRef> specs;
  WB_TRY(make_span(count(source.compile_specs()), &specs, "compile specs"));
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    const fb::CompileSpec& spec = *source.compile_specs()->Get(i);
    specs[i].key = view(spec.key());
    if (spec.value() != nullptr) {
      specs[i].value = {reinterpret_cast<const std::byte*>(spec.value()->data()), spec.value()->size()};
    }
  }
  const std::span<const std::byte> blob = method_.program_->delegate_data(source);
  const ChainedData named(*method_.program_, options_.external_data);
  BackendInitContext context;
  context.host = &method_.host_;
  context.named_data = &named;
  context.method_name = view(method_.serialized_->name());
  WB_TRY(delegate.backend->init(context, blob, specs, &delegate.handle));
  delegate.initialized = true;
  if (context.release_processed) method_.program_->source().release(blob);
  return Error::Ok;
}

}  // namespace wb
