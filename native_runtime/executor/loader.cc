#include "executor/loader.h"

#include <cstdarg>
#include <new>

#include "executor/registry.h"

namespace wb {

Error MethodLoader::fail(Error error, const char* format, ...) {
  method_.diagnostic_.add("method %s", method_.name());
  std::va_list args;
  va_start(args, format);
  method_.diagnostic_.vadd(format, args);
  va_end(args);
  return error;
}

void MethodLoader::log(const char* name, std::uint64_t start_ns) {
  if (options_.trace == nullptr) return;
  options_.trace->record({.start_ns = start_ns, .end_ns = now_ns(), .name = name, .kind = EventKind::Load});
}

Error MethodLoader::run() {
  const std::uint64_t start = now_ns();
  method_.memory_.set_limit(options_.memory_limit);
  WB_TRY(Registry::get().check(method_.diagnostic_));
  WB_TRY(make_arenas());
  WB_TRY(make_values());
  WB_TRY(make_steps());
  const std::size_t flags = std::size_t{method_.value_count_} + 1;
  written_ = method_.memory_.array<bool>(flags);
  readonly_ = method_.memory_.array<bool>(flags);
  constant_ = method_.memory_.array<bool>(flags);
  method_.input_set_ = method_.memory_.array<bool>(method_.input_count());
  method_.input_written_ = method_.memory_.array<bool>(method_.input_count());
  method_.staging_ = method_.memory_.array<void*>(method_.input_count());
  if (written_ == nullptr || readonly_ == nullptr || constant_ == nullptr || method_.input_set_ == nullptr ||
      method_.input_written_ == nullptr || method_.staging_ == nullptr) {
    return no_memory();
  }
  mark_written();
  WB_TRY(save_changing());
  WB_TRY(bind_inputs_and_outputs());
  WB_TRY(find_constants());
  for (std::uint32_t s = 0; s < method_.step_count_; ++s) WB_TRY(check_outs(method_.steps_[s]));
  mark_written_inputs();
  WB_TRY(find_late());
  log("Method::load values", start);

  const std::uint64_t prepare = now_ns();
  method_.preparing_ = true;
  Error error = init_delegates();
  log("Method::load delegates", prepare);
  const std::uint64_t kernels = now_ns();
  if (error == Error::Ok) error = prepare_kernels();
  method_.preparing_ = false;
  log("Method::load kernels", kernels);
  WB_TRY(error);
  method_.stats_.prepare_ns = now_ns() - prepare;
  method_.stats_.load_ns = now_ns() - start;
  method_.stats_.scratch_bytes = method_.scratch_size_;
  method_.stats_.method_bytes = method_.memory_.reserved();
  log("Method::load", start);
  return Error::Ok;
}

std::span<EValue* const> MethodLoader::arguments_of_delegate(std::uint32_t delegate) const {
  for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
    const Step& step = method_.steps_[s];
    if (step.kind == Step::Kind::Delegate && step.target == delegate) return {step.args, step.arg_count};
  }
  return {};
}

Error MethodLoader::init_delegates() {
  method_.delegates_ = method_.memory_.array<Method::Delegate>(count(plan_.delegates()));
  if (method_.delegates_ == nullptr) return no_memory();
  for (std::uint32_t i = 0; i < count(plan_.delegates()); ++i) {
    const std::uint64_t start = now_ns();
    const fb::BackendDelegate& record = *plan_.delegates()->Get(i);
    Method::Delegate& delegate = *new (&method_.delegates_[i]) Method::Delegate();
    ++method_.delegate_count_;
    delegate.backend = Registry::get().find_backend(view(record.id()));
    if (delegate.backend == nullptr) {
      return fail(Error::NotFound, "delegate %u: no backend %s is registered", i, record.id()->c_str());
    }
    if (!delegate.backend->is_available()) {
      return fail(Error::NotFound, "delegate %u: the backend %s is not available on this machine", i,
                  record.id()->c_str());
    }
    const std::uint32_t spec_count = count(record.compile_specs());
    auto* specs = method_.memory_.array<CompileSpecRef>(spec_count);
    if (specs == nullptr) return no_memory();
    for (std::uint32_t k = 0; k < spec_count; ++k) {
      const fb::CompileSpec& spec = *record.compile_specs()->Get(k);
      specs[k].key = view(spec.key());
      if (spec.value() != nullptr) {
        specs[k].value = {reinterpret_cast<const std::byte*>(spec.value()->data()), spec.value()->size()};
      }
    }
    BackendInitContext context;
    context.host = &method_.host_;
    context.named_data = &data_;
    context.method_name = view(plan_.name());
    context.arguments = arguments_of_delegate(i);
    const std::span<const std::byte> processed = program_.delegate_data(record);
    const Error error = delegate.backend->init(context, processed, {specs, spec_count}, &delegate.handle);
    if (error != Error::Ok) return fail(error, "in the initialization of delegate %u (%s)", i, record.id()->c_str());
    delegate.initialized = true;
    if (context.release_processed) program_.source().release(processed);
    log(record.id()->c_str(), start);
  }
  return Error::Ok;
}

Error MethodLoader::prepare_kernels() {
  for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
    Step& step = method_.steps_[s];
    if (step.kind != Step::Kind::Kernel) continue;
    bool* constant = method_.memory_.array<bool>(step.arg_count);
    void* place = method_.memory_.allocate(sizeof(KernelContext), alignof(KernelContext));
    if (constant == nullptr || place == nullptr) return no_memory();
    for (std::uint32_t a = 0; a < step.arg_count; ++a) constant[a] = constant_[index_of(*step.args[a])];
    step.context = new (place) KernelContext(step.name, step.args, constant, step.arg_count, &method_.host_);
    const Error error = prepare_[s](*step.context);
    if (error != Error::Ok) {
      return fail(error, "%s, instruction %d of chain %d", step.name, step.instruction, step.chain);
    }
  }
  auto* scratch = static_cast<std::byte*>(method_.memory_.allocate(method_.scratch_size_, 64));
  if (scratch == nullptr) return no_memory();
  for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
    if (method_.steps_[s].context == nullptr) continue;
    method_.steps_[s].context->scratch = scratch;
    method_.steps_[s].context->scratch_size = method_.scratch_size_;
  }
  return Error::Ok;
}

}  // namespace wb
