// Executing a method.
#include <cstring>

#include "executor/method.h"

namespace wb {
namespace {

constexpr std::uint32_t kStepsPerPoll = 16;

// Tells what a step did since `start_ns`. Returns when the next step starts: the end of this one (one clock read then
// serves both), or later, where copies of the outputs took time.
std::uint64_t log(const Step& step, std::uint64_t start_ns, EventSink& trace, bool outputs) {
  const Event event{.start_ns = start_ns,
                    .end_ns = now_ns(),
                    .name = step.name,
                    .chain = step.chain,
                    .instruction = step.instruction,
                    .kind = EventKind::Instruction};
  trace.record(event);
  if (!outputs) return event.end_ns;
  int index = 0;
  for (std::uint32_t a = step.out_begin; a < step.arg_count; ++a) {
    const EValue& out = *step.args[a];
    if (out.is_tensor()) trace.output(event, index++, out.tensor());
    if (out.tag != Tag::TensorList) continue;
    for (std::uint32_t i = 0; i < out.payload.tensor_list.size; ++i) {
      trace.output(event, index++, out.payload.tensor_list.items[i]->tensor());
    }
  }
  return now_ns();
}

}  // namespace

Error Method::execute(const ExecuteOptions& options) {
  if (!busy_.load(std::memory_order_relaxed)) {
    diagnostic_.add("method %s: acquire it before it is executed", name());
    return Error::InvalidState;
  }
  for (std::uint32_t i = 0; i < input_count(); ++i) {
    if (input_set_[i]) continue;
    diagnostic_.add("method %s: input %u of %u was not given", name(), i, input_count());
    return Error::InvalidArgument;
  }
  const std::uint64_t start = options.trace == nullptr ? 0 : now_ns();
  const Error error = run(options);
  if (options.trace != nullptr) {
    options.trace->record({.start_ns = start, .end_ns = now_ns(), .name = name(), .kind = EventKind::Execute});
  }
  return error;
}

Error Method::run(const ExecuteOptions& options) {
  EventSink* const trace = options.trace;
  std::uint64_t executed = 0;
  const bool outputs = trace != nullptr && trace->wants_outputs();
  std::uint64_t start = trace == nullptr ? 0 : now_ns();
  for (std::uint32_t next = 0; next < step_count_;) {
    const Step& step = steps_[next++];
    if (cancelled_.load(std::memory_order_relaxed) ||
        (options.interrupted != nullptr && executed % kStepsPerPoll == 0 && options.interrupted(options.self))) {
      diagnostic_.add("the execution was cancelled");
      return failed(step, Error::Cancelled);
    }
    ++executed;
    if (options.max_instructions != 0 && executed > options.max_instructions) {
      diagnostic_.add("more than %llu instructions were executed",
                      static_cast<unsigned long long>(options.max_instructions));
      return failed(step, Error::OutOfResources);
    }
    Error error = Error::Ok;
    switch (step.kind) {
      case Step::Kind::Kernel: error = run_kernel(step); break;
      case Step::Kind::Delegate: error = run_delegate(step, trace); break;
      case Step::Kind::Move: error = move(*step.args[0], *step.args[1]); break;
      case Step::Kind::JumpFalse: {
        bool truth = true;
        error = condition(*step.args[0], &truth);
        if (!truth) next = step.target;
        break;
      }
      case Step::Kind::Free:
        if (step.args[0]->is_tensor()) free_memory(step.args[0]->tensor());
        break;
    }
    if (__builtin_expect(error != Error::Ok, 0)) return failed(step, error);
    if (trace != nullptr) start = log(step, start, *trace, outputs);
  }
  return Error::Ok;
}

Error Method::run_kernel(const Step& step) {
  if (__builtin_expect(step.late_count != 0, 0)) WB_TRY(check_late(step));
  return step.execute(*step.context);
}

Error Method::run_delegate(const Step& step, EventSink* trace) {
  if (step.late_count != 0) WB_TRY(check_late(step));
  Delegate& delegate = delegates_[step.target];
  BackendExecuteContext context;
  context.host = &host_;
  context.trace = trace;
  context.chain = step.chain;
  context.instruction = step.instruction;
  return delegate.backend->execute(context, delegate.handle, {step.args, step.arg_count});
}

Error Method::check_late(const Step& step) {
  for (std::uint32_t i = 0; i < step.late_count; ++i) {
    if (step.late[i]->data != nullptr || step.late[i]->numel() == 0) continue;
    diagnostic_.add("an argument has no memory yet: nothing before this instruction has written it");
    return Error::InvalidProgram;
  }
  return Error::Ok;
}

Error Method::move(EValue& from, EValue& to) {
  if (&from == &to) return Error::Ok;
  if (!from.is_tensor()) {
    to = from;
    return Error::Ok;
  }
  const Tensor& source = from.tensor();
  Tensor& target = to.tensor();
  if (source.data == nullptr && source.numel() != 0) {
    diagnostic_.add("the tensor to move has no memory yet");
    return Error::InvalidProgram;
  }
  if (storage(target) == Storage::Arena || storage(target) == Storage::Own) {
    // Its memory was planned for as long as it is used. That of the source may be given to others sooner: branches are
    // planned apart from what follows them.
    WB_TRY(resize(target, source.shape()));
    if (source.numel() != 0) std::memmove(target.data, source.data, source.nbytes());
    return Error::Ok;
  }
  target.capacity = source.nbytes();
  WB_TRY(resize(target, source.shape()));
  target.data = source.data;
  target.capacity = source.capacity;
  return Error::Ok;
}

Error Method::condition(const EValue& value, bool* result) {
  if (value.tag == Tag::Bool) {
    *result = value.payload.as_bool;
    return Error::Ok;
  }
  if (!value.is_tensor() || (value.tensor().data == nullptr && value.tensor().numel() != 0)) {
    diagnostic_.add("condition: expected a bool or a tensor of them with data, found %s", name_of(value.tag));
    return Error::InvalidType;
  }
  const auto* data = value.tensor().const_data<std::uint8_t>();
  for (std::int64_t i = 0; i < value.tensor().numel(); ++i) {
    if (data[i] == 0) *result = false;
  }
  return Error::Ok;
}

Error Method::failed(const Step& step, Error error) {
  diagnostic_.add("%s, instruction %d of chain %d of method %s", step.name, step.instruction, step.chain, name());
  return error;
}

}  // namespace wb
