#include "executor/method.h"

#include <algorithm>
#include <cstdarg>
#include <new>

#include "executor/loader.h"

namespace wb {

using ull = unsigned long long;

Error MethodLoader::run() {
  WB_TRY(make_arenas());
  WB_TRY(make_values());
  WB_TRY(make_signature());
  WB_TRY(make_instructions());
  WB_TRY(find_kernels());
  return init_delegates();
}

Result<std::unique_ptr<Method>> Method::load(const Program& program, std::string_view name,
                                             const MethodOptions& options, Diagnostic& diagnostic) {
  const std::uint64_t start = now_ns();
  const fb::ExecutionPlan* serialized = program.method(name);
  if (serialized == nullptr) {
    diagnostic.add("the program has no method %.*s; it has", static_cast<int>(name.size()), name.data());
    for (std::size_t i = 0; i < program.method_count(); ++i) {
      diagnostic.add("%s", program.method_at(i).name()->c_str());
    }
    return Error::InvalidArgument;
  }
  std::unique_ptr<Method> method(new (std::nothrow) Method());
  if (method == nullptr) return Error::MemoryAllocationFailed;
  method->program_ = &program;
  method->serialized_ = serialized;
  method->host_ = {method.get(), &host_allocate, &host_request_scratch, &host_resize, &host_report};
  method->preparing_ = true;
  const Error error = MethodLoader(*method, options).run();
  method->preparing_ = false;
  if (error != Error::Ok) {
    diagnostic = method->diagnostic_;
    diagnostic.add("method %s", serialized->name()->c_str());
    return error;
  }
  const std::uint64_t end = now_ns();
  method->load_ns_ = end - start;
  if (options.trace != nullptr) {
    options.trace->record({.start_ns = start, .end_ns = end, .name = serialized->name()->c_str(), .kind = EventKind::Load});
  }
  return method;
}

Method::~Method() {
  for (const Delegate& delegate : plan_.delegates) {
    if (delegate.initialized) delegate.backend->destroy(delegate.handle);
  }
}

void* Method::host_allocate(void* self, std::size_t bytes, std::size_t alignment) {
  auto* method = static_cast<Method*>(self);
  return method->preparing_ ? method->allocator_.allocate(bytes, alignment) : nullptr;
}

void Method::host_request_scratch(void* self, std::size_t bytes) {
  auto* method = static_cast<Method*>(self);
  if (method->preparing_) method->scratch_wanted_ = std::max(method->scratch_wanted_, bytes);
}

Error Method::host_resize(void* self, Tensor& tensor, const std::int32_t* sizes, int rank) {
  auto* method = static_cast<Method*>(self);
  if (rank != tensor.rank) {
    method->diagnostic_.add("an output of rank %d can't become one of rank %d", tensor.rank, rank);
    return Error::InvalidArgument;
  }
  std::size_t nbytes = element_size(tensor.dtype);
  bool same = true;
  for (int d = 0; d < rank; ++d) {
    same = same && sizes[d] == tensor.sizes[d];
    if (sizes[d] < 0 || __builtin_mul_overflow(nbytes, static_cast<std::size_t>(sizes[d]), &nbytes)) {
      method->diagnostic_.add("size %d of an output would be %d", d, sizes[d]);
      return Error::InvalidArgument;
    }
  }
  if (same) return Error::Ok;
  if (tensor.dynamism == ShapeDynamism::Static) {
    for (int d = 0; d < rank; ++d) {
      if (sizes[d] == tensor.sizes[d]) continue;
      method->diagnostic_.add("dimension %d of a static output: expected %d, found %d", d, tensor.sizes[d], sizes[d]);
    }
    return Error::InvalidArgument;
  }
  if (nbytes > tensor.capacity) {
    method->diagnostic_.add("an output needs %zu bytes, %zu are planned for it", nbytes, tensor.capacity);
    return Error::OutOfResources;
  }
  std::copy_n(sizes, rank, tensor.sizes);
  strides_from_dim_order(tensor.shape(), tensor.dim_order, tensor.strides);
  return Error::Ok;
}

void Method::host_report(void* self, const char* format, std::va_list args) {
  static_cast<Method*>(self)->diagnostic_.vadd(format, args);
}

bool Method::acquire() {
  bool expected = false;
  if (!busy_.compare_exchange_strong(expected, true, std::memory_order_acquire)) return false;
  diagnostic_.clear();
  return true;
}

void Method::release() {
  // Memory of the caller is not touched after this.
  for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
    EValue& value = plan_.values[plan_.inputs[i]];
    if (value.is_tensor()) value.tensor().data = plan_.staging[i];
  }
  busy_.store(false, std::memory_order_release);
}

std::size_t Method::arena_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < arena_count_; ++i) bytes += arenas_[i].size();
  return bytes;
}

void Method::restore() {
  for (std::size_t i = plan_.moved.size(); i-- > 0;) plan_.values[plan_.moved[i].index] = plan_.moved[i].value;
}

Error Method::execute(const ExecuteOptions& options) {
  diagnostic_.clear();
  restore();
  if (options.trace == nullptr) return run<false>(options);
  const std::uint64_t start = now_ns();
  const Error error = run<true>(options);
  options.trace->record({.start_ns = start,
                         .end_ns = now_ns(),
                         .name = serialized_->name()->c_str(),
                         .chain = 0,
                         .kind = EventKind::Execute});
  return error;
}

namespace {

bool is_true(const EValue& condition) {
  if (condition.tag == Tag::Bool) return condition.payload.as_bool;
  const Tensor& tensor = condition.tensor();
  const auto* data = tensor.const_data<std::uint8_t>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    if (data[i] == 0) return false;
  }
  return true;
}

}  // namespace

template <bool kTraced>
Error Method::run(const ExecuteOptions& options) {
  const Instruction* const instructions = plan_.instructions.data();
  const auto end = static_cast<std::uint32_t>(plan_.instructions.size());
  std::uint64_t left = options.max_instructions;
  std::uint64_t last = kTraced ? now_ns() : 0;
  std::uint32_t pc = 0;
  while (pc < end) {
    const Instruction& instruction = instructions[pc];
    const std::uint32_t current = pc++;
    switch (instruction.kind) {
      case InstructionKind::Kernel: {
        const Error error = instruction.execute(*instruction.context);
        if (__builtin_expect(error != Error::Ok, 0)) return explain(error, current);
        break;
      }
      case InstructionKind::Delegate: {
        const Error error = run_delegate(instruction, kTraced ? options.trace : nullptr);
        if (__builtin_expect(error != Error::Ok, 0)) return explain(error, current);
        break;
      }
      case InstructionKind::Move: *instruction.to = *instruction.from; break;
      case InstructionKind::JumpFalse:
        if (!is_true(*instruction.condition)) pc = instruction.destination;
        break;
      case InstructionKind::Free: break;
    }
    if constexpr (kTraced) {
      // The end of one instruction is the start of the next: one clock read for each.
      const std::uint64_t now = now_ns();
      record(options, current, last, now);
      last = options.trace->wants_outputs() ? now_ns() : now;
    }
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      diagnostic_.add("cancelled after instruction %u", current);
      return Error::EndOfMethod;
    }
    if (options.max_instructions != 0 && --left == 0 && pc < end) {
      diagnostic_.add("stopped after %llu instructions", static_cast<ull>(options.max_instructions));
      return Error::OutOfResources;
    }
  }
  return Error::Ok;
}

Error Method::run_delegate(const Instruction& instruction, EventSink* trace) {
  const Delegate& delegate = plan_.delegates[instruction.delegate];
  BackendExecuteContext context;
  context.host = &host_;
  context.trace = trace;
  context.instruction = static_cast<std::int32_t>(&instruction - plan_.instructions.data());
  return delegate.backend->execute(context, delegate.handle, {instruction.args, instruction.arg_count});
}

Error Method::explain(Error error, std::uint32_t pc) {
  diagnostic_.add("in instruction %u (%s)", pc, plan_.instructions[pc].name);
  return error;
}

void Method::record(const ExecuteOptions& options, std::uint32_t pc, std::uint64_t start, std::uint64_t end) const {
  const Instruction& instruction = plan_.instructions[pc];
  const Event event{.start_ns = start,
                    .end_ns = end,
                    .name = instruction.name,
                    .chain = 0,
                    .instruction = static_cast<std::int32_t>(pc)};
  options.trace->record(event);
  if (!options.trace->wants_outputs()) return;
  int index = 0;
  for (std::uint32_t i = instruction.first_output; i < instruction.arg_count; ++i) {
    const EValue& value = *instruction.args[i];
    if (value.is_tensor()) {
      options.trace->output(event, index++, value.tensor());
    } else if (value.tag == Tag::TensorList) {
      for (std::uint32_t k = 0; k < value.payload.tensor_list.size; ++k) {
        const EValue& item = *value.payload.tensor_list.items[k];
        if (item.is_tensor()) options.trace->output(event, index++, item.tensor());
      }
    }
  }
}

}  // namespace wb
