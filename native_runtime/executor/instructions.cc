// Instructions of a method: arguments as pointers, what is written, and what must not be.
#include <algorithm>

#include "executor/loader.h"

namespace wb {

Error MethodLoader::make_instructions() {
  Plan& plan = method_.plan_;
  const auto* chains = method_.serialized_->chains();
  if (count(chains) > 1) {
    method_.diagnostic_.add("the method has %u chains, one is supported", count(chains));
    return Error::NotSupported;
  }
  const auto* source = chains->Get(0)->instructions();
  WB_TRY(make_span(count(source), &plan.instructions, "instructions"));
  for (std::uint32_t i = 0; i < count(source); ++i) {
    if (const Error error = make_instruction(*source->Get(i), plan.instructions[i]); error != Error::Ok) {
      method_.diagnostic_.add("instruction %u", i);
      return error;
    }
  }
  for (std::uint32_t i = 0; i < count(source); ++i) {
    if (const Error error = check_outputs(plan.instructions[i]); error != Error::Ok) {
      method_.diagnostic_.add("instruction %u (%s)", i, plan.instructions[i].name);
      return error;
    }
  }
  for (EValue& value : plan.values) {
    if (value.tag != Tag::IntList) continue;
    IntListRef& list = value.payload.int_list;
    list.literal = true;
    for (std::uint32_t i = 0; i < list.size; ++i) {
      const std::uint8_t flags = plan.flags[index_of(*list.items[i])];
      list.literal = list.literal && (flags & kWritten) == 0;
    }
  }
  return save_moved();
}

Error MethodLoader::make_instruction(const fb::Instruction& source, Instruction& target) {
  Plan& plan = method_.plan_;
  switch (source.instr_args_type()) {
    case fb::InstructionArguments::KernelCall: return make_kernel_call(*source.instr_args_as_KernelCall(), target);
    case fb::InstructionArguments::DelegateCall: {
      const auto& call = *source.instr_args_as_DelegateCall();
      target.kind = InstructionKind::Delegate;
      target.delegate = static_cast<std::uint32_t>(call.delegate_index());
      target.name = method_.serialized_->delegates()->Get(target.delegate)->id()->c_str();
      // Which arguments a delegate writes only its backend knows.
      mark(call.args(), kReferenced);
      WB_TRY(make_arguments(call.args(), target));
      for (std::uint32_t i = 0; i < target.arg_count; ++i) mark_written(*target.args[i]);
      return Error::Ok;
    }
    case fb::InstructionArguments::MoveCall: return make_move(*source.instr_args_as_MoveCall(), target);
    case fb::InstructionArguments::JumpFalseCall: {
      const auto& call = *source.instr_args_as_JumpFalseCall();
      target.kind = InstructionKind::JumpFalse;
      target.name = "jump_false";
      target.destination = static_cast<std::uint32_t>(call.destination_instruction());
      target.condition = &plan.values[static_cast<std::uint32_t>(call.cond_value_index())];
      plan.flags[static_cast<std::uint32_t>(call.cond_value_index())] |= kReferenced;
      if (target.condition->is_tensor() && target.condition->tensor().dtype != ScalarType::Bool) {
        method_.diagnostic_.add("condition: expected a bool tensor, found %s", name_of(target.condition->tensor().dtype));
        return Error::InvalidType;
      }
      return Error::Ok;
    }
    default:
      target.kind = InstructionKind::Free;
      target.name = "free";
      return Error::Ok;
  }
}

Error MethodLoader::make_kernel_call(const fb::KernelCall& source, Instruction& target) {
  target.kind = InstructionKind::Kernel;
  const fb::Operator& op = *method_.serialized_->operators()->Get(static_cast<std::uint32_t>(source.op_index()));
  const std::string_view name = view(op.name());
  const std::string_view overload = view(op.overload());
  auto* text = method_.allocator_.array<char>(name.size() + overload.size() + 2);
  if (text == nullptr) return out_of_memory("an operator's name");
  char* end = std::copy(name.begin(), name.end(), text);
  if (!overload.empty()) {
    *end++ = '.';
    end = std::copy(overload.begin(), overload.end(), end);
  }
  *end = '\0';
  target.name = text;
  mark(source.args(), kReferenced);
  WB_TRY(make_arguments(source.args(), target));
  strip_repetition(source.args(), target);
  for (std::uint32_t i = target.first_output; i < target.arg_count; ++i) mark_written(*target.args[i]);
  return Error::Ok;
}

Error MethodLoader::make_arguments(const flatbuffers::Vector<std::int32_t>* source, Instruction& target) {
  auto* args = method_.allocator_.array<EValue*>(count(source));
  if (args == nullptr) return out_of_memory("arguments");
  for (std::uint32_t i = 0; i < count(source); ++i) {
    args[i] = &method_.plan_.values[static_cast<std::uint32_t>(source->Get(i))];
  }
  target.args = args;
  target.arg_count = count(source);
  target.first_output = target.arg_count;
  return Error::Ok;
}

// The emitter lists what an operator returns behind its out arguments: the one out again, or a list of all outs. Kernels
// see inputs and outs only. Operators without out arguments (executorch_prim) write their last argument.
void MethodLoader::strip_repetition(const flatbuffers::Vector<std::int32_t>* source, Instruction& target) const {
  const std::uint32_t n = target.arg_count;
  if (n == 0) return;
  target.first_output = n - 1;
  if (n == 1) return;
  const EValue& last = *target.args[n - 1];
  if (source->Get(n - 1) == source->Get(n - 2)) {
    target.arg_count = n - 1;
    target.first_output = n - 2;
    return;
  }
  if (last.tag != Tag::TensorList) return;
  const TensorListRef& list = last.payload.tensor_list;
  const EValue& before = *target.args[n - 2];
  if (before.tag == Tag::TensorList && before.payload.tensor_list.size == list.size) {
    bool same = true;
    for (std::uint32_t i = 0; i < list.size; ++i) same = same && list.items[i] == before.payload.tensor_list.items[i];
    if (same) {
      target.arg_count = n - 1;
      target.first_output = n - 2;
      return;
    }
  }
  if (list.size == 0 || list.size > n - 1) return;
  const std::uint32_t first = n - 1 - list.size;
  for (std::uint32_t i = 0; i < list.size; ++i) {
    if (list.items[i] != target.args[first + i]) return;
  }
  target.arg_count = n - 1;
  target.first_output = first;
}

Error MethodLoader::make_move(const fb::MoveCall& source, Instruction& target) {
  Plan& plan = method_.plan_;
  const auto from = static_cast<std::uint32_t>(source.move_from());
  const auto to = static_cast<std::uint32_t>(source.move_to());
  target.kind = InstructionKind::Move;
  target.name = "move";
  target.from = &plan.values[from];
  target.to = &plan.values[to];
  plan.flags[from] |= kReferenced;
  plan.flags[to] |= kWritten | kReferenced;
  // Kernels were checked against the value that the target has at load.
  if (target.from->tag != target.to->tag) {
    method_.diagnostic_.add("moves value %u, a %s, to value %u, a %s", from, name_of(target.from->tag), to,
                            name_of(target.to->tag));
    return Error::InvalidProgram;
  }
  if (!target.from->is_tensor()) return Error::Ok;
  const Tensor& a = target.from->tensor();
  const Tensor& b = target.to->tensor();
  bool same = a.dtype == b.dtype && a.rank == b.rank;
  const bool fixed = b.dynamism == ShapeDynamism::Static;
  if (fixed) same = same && a.dynamism == ShapeDynamism::Static;
  for (int d = 0; same && d < a.rank; ++d) {
    same = a.dim_order[d] == b.dim_order[d] && (fixed ? a.sizes[d] == b.sizes[d] : a.sizes[d] <= b.sizes[d]);
  }
  if (same) return Error::Ok;
  method_.diagnostic_.add("moves value %u to value %u, which has another dtype, rank, size or dim order", from, to);
  return Error::InvalidProgram;
}

void MethodLoader::mark(const flatbuffers::Vector<std::int32_t>* args, std::uint8_t flags) {
  for (std::uint32_t i = 0; i < count(args); ++i) {
    method_.plan_.flags[static_cast<std::uint32_t>(args->Get(i))] |= flags;
  }
}

void MethodLoader::mark_written(EValue& value) {
  const std::uint32_t index = index_of(value);
  if (index < method_.plan_.values.size()) method_.plan_.flags[index] |= kWritten;
  if (value.tag != Tag::TensorList && value.tag != Tag::OptionalTensorList) return;
  for (std::uint32_t i = 0; i < value.payload.tensor_list.size; ++i) {
    if (value.payload.tensor_list.items[i]->is_tensor()) mark_written(*value.payload.tensor_list.items[i]);
  }
}

Error MethodLoader::check_outputs(const Instruction& instruction) {
  if (instruction.kind != InstructionKind::Kernel) return Error::Ok;
  for (std::uint32_t i = instruction.first_output; i < instruction.arg_count; ++i) {
    const EValue& value = *instruction.args[i];
    const bool list = value.tag == Tag::TensorList || value.tag == Tag::OptionalTensorList;
    const std::uint32_t items = list ? value.payload.tensor_list.size : 1;
    for (std::uint32_t k = 0; k < items; ++k) {
      const EValue& item = list ? *value.payload.tensor_list.items[k] : value;
      if (!item.is_tensor()) continue;
      if ((method_.plan_.flags[index_of(item)] & kStoredData) != 0) {
        method_.diagnostic_.add("argument %u: writes to value %u, which is a constant", i, index_of(item));
        return Error::InvalidProgram;
      }
      WB_TRY(check_overlap(instruction, item.tensor()));
    }
  }
  return Error::Ok;
}

// An input may lie exactly where an output lies (in place); any other overlap is a broken plan.
Error MethodLoader::check_overlap(const Instruction& instruction, const Tensor& written) {
  const auto* begin = static_cast<const std::byte*>(written.data);
  const auto disjoint_or_same = [&](const EValue& value) {
    if (!value.is_tensor()) return true;
    const Tensor& read = value.tensor();
    const auto* other = static_cast<const std::byte*>(read.data);
    if (read.capacity == 0 || written.capacity == 0 || other == begin) return true;
    return other + read.capacity <= begin || begin + written.capacity <= other;
  };
  for (std::uint32_t i = 0; i < instruction.first_output; ++i) {
    const EValue& value = *instruction.args[i];
    bool good = disjoint_or_same(value);
    if (value.tag == Tag::TensorList || value.tag == Tag::OptionalTensorList) {
      for (std::uint32_t k = 0; k < value.payload.tensor_list.size; ++k) {
        good = good && disjoint_or_same(*value.payload.tensor_list.items[k]);
      }
    }
    if (!good) {
      method_.diagnostic_.add("argument %u overlaps in memory with an output", i);
      return Error::InvalidProgram;
    }
  }
  return Error::Ok;
}

Error MethodLoader::save_moved() {
  Plan& plan = method_.plan_;
  std::size_t moves = 0;
  for (const Instruction& instruction : plan.instructions) moves += instruction.kind == InstructionKind::Move ? 1 : 0;
  WB_TRY(make_span(moves, &plan.moved, "moves"));
  std::size_t next = 0;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind != InstructionKind::Move) continue;
    plan.moved[next++] = {index_of(*instruction.to), *instruction.to};
  }
  return Error::Ok;
}

}  // namespace wb
