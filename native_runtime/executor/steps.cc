// Instructions: arguments, what each writes, kernels.
#include <cstdio>
#include <cstring>
#include <new>

#include "executor/loader.h"
#include "executor/registry.h"

namespace wb {
namespace {

using ull = unsigned long long;

constexpr std::size_t kNameBytes = 128;  // names of operators are checked to be shorter

// Calls `visit(Tensor&)` for a tensor and for each tensor of a list.
template <typename F>
void for_each_tensor(const EValue& value, F&& visit) {
  if (value.is_tensor()) visit(value.tensor());
  if (value.tag != Tag::TensorList && value.tag != Tag::OptionalTensorList) return;
  for (std::uint32_t i = 0; i < value.payload.tensor_list.size; ++i) {
    const EValue& item = *value.payload.tensor_list.items[i];
    if (item.is_tensor()) visit(item.tensor());
  }
}

template <typename F>
void for_each_value(EValue& value, F&& visit) {
  visit(value);
  if (value.tag != Tag::TensorList && value.tag != Tag::OptionalTensorList) return;
  for (std::uint32_t i = 0; i < value.payload.tensor_list.size; ++i) visit(*value.payload.tensor_list.items[i]);
}

bool is_view(const Step& step) {
  return step.kind == Step::Kind::Kernel && std::strncmp(step.name, "executorch_prim::et_view.", 25) == 0;
}

// Operators that write to their first argument: "aten::copy_", "aten::index_put_", and the primitive of loops.
bool writes_first_argument(const char* name) {
  const char* dot = std::strchr(name, '.');
  const std::size_t length = dot == nullptr ? std::strlen(name) : static_cast<std::size_t>(dot - name);
  return (length != 0 && name[length - 1] == '_') || std::strncmp(name, "executorch_prim::et_copy_index.", 31) == 0;
}

bool is_written(const Step& step, std::uint32_t arg) {
  return arg >= step.out_begin || (arg == 0 && step.kind == Step::Kind::Kernel && writes_first_argument(step.name));
}

bool same_items(const EValue& list, EValue* const* values, std::uint32_t count) {
  if (list.tag != Tag::TensorList || list.payload.tensor_list.size != count || count == 0) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (list.payload.tensor_list.items[i] != values[i]) return false;
  }
  return true;
}

// The results of an out-variant operator stand behind its out arguments once more. Kernels do not see them.
void strip_results(Step& step) {
  const std::uint32_t n = step.arg_count;
  step.out_begin = n == 0 ? 0 : n - 1;
  if (n < 2) return;
  const EValue& last = *step.args[n - 1];
  const EValue& before = *step.args[n - 2];
  if (&last == &before && (last.is_tensor() || last.tag == Tag::TensorList)) {
    step.arg_count = n - 1;
    step.out_begin = n - 2;
  } else if (last.tag == Tag::TensorList) {
    const std::uint32_t outs = last.payload.tensor_list.size;
    if (outs < n && same_items(last, step.args + (n - 1 - outs), outs)) {
      step.arg_count = n - 1;
      step.out_begin = n - 1 - outs;
    } else if (before.tag == Tag::TensorList && outs == before.payload.tensor_list.size &&
               same_items(last, before.payload.tensor_list.items, outs)) {
      step.arg_count = n - 1;
      step.out_begin = n - 2;
    }
  }
}

}  // namespace

Error MethodLoader::make_args(const flatbuffers::Vector<std::int32_t>* indices, Step& step) {
  step.arg_count = count(indices);
  step.args = method_.memory_.array<EValue*>(step.arg_count);
  if (step.args == nullptr) return no_memory();
  for (std::uint32_t i = 0; i < step.arg_count; ++i) step.args[i] = &method_.values_[indices->Get(i)];
  return Error::Ok;
}

Error MethodLoader::make_steps() {
  std::size_t total = 0;
  for (std::uint32_t c = 0; c < count(plan_.chains()); ++c) total += count(plan_.chains()->Get(c)->instructions());
  method_.steps_ = method_.memory_.array<Step>(total);
  prepare_ = method_.memory_.array<KernelFunction>(total);
  if (method_.steps_ == nullptr || prepare_ == nullptr) return no_memory();
  std::uint32_t missing = 0;
  for (std::uint32_t c = 0; c < count(plan_.chains()); ++c) {
    const auto* instructions = plan_.chains()->Get(c)->instructions();
    const std::uint32_t first = method_.step_count_;
    for (std::uint32_t i = 0; i < count(instructions); ++i) {
      Step& step = *new (&method_.steps_[method_.step_count_++]) Step();
      step.chain = static_cast<std::int32_t>(c);
      step.instruction = static_cast<std::int32_t>(i);
      const Error error = make_step(*instructions->Get(i), first, step);
      if (error == Error::OperatorMissing) {
        ++missing;  // all of them are named, not the first only
      } else {
        WB_TRY(error);
      }
    }
  }
  return missing == 0 ? Error::Ok : Error::OperatorMissing;
}

Error MethodLoader::make_step(const fb::Instruction& instruction, std::uint32_t first, Step& step) {
  switch (instruction.instr_args_type()) {
    case fb::InstructionArguments::KernelCall: return make_kernel_step(*instruction.instr_args_as_KernelCall(), step);
    case fb::InstructionArguments::DelegateCall: {
      const auto& call = *instruction.instr_args_as_DelegateCall();
      step.kind = Step::Kind::Delegate;
      step.target = static_cast<std::uint32_t>(call.delegate_index());
      step.name = plan_.delegates()->Get(step.target)->id()->c_str();
      WB_TRY(make_args(call.args(), step));
      step.out_begin = step.arg_count;  // known when all instructions are: mark_outs_of_delegates
      return Error::Ok;
    }
    case fb::InstructionArguments::MoveCall: {
      const auto& call = *instruction.instr_args_as_MoveCall();
      step.kind = Step::Kind::Move;
      step.name = "MoveCall";
      step.arg_count = 2;
      step.out_begin = 1;
      step.args = method_.memory_.array<EValue*>(2);
      if (step.args == nullptr) return no_memory();
      step.args[0] = &method_.values_[call.move_from()];
      step.args[1] = &method_.values_[call.move_to()];
      return check_move(step);
    }
    case fb::InstructionArguments::JumpFalseCall: {
      const auto& call = *instruction.instr_args_as_JumpFalseCall();
      step.kind = Step::Kind::JumpFalse;
      step.name = "JumpFalseCall";
      step.target = first + static_cast<std::uint32_t>(call.destination_instruction());
      step.arg_count = step.out_begin = 1;
      step.args = method_.memory_.array<EValue*>(1);
      if (step.args == nullptr) return no_memory();
      step.args[0] = &method_.values_[call.cond_value_index()];
      if (step.args[0]->is_tensor() && step.args[0]->tensor().dtype != ScalarType::Bool) {
        return fail(Error::InvalidProgram, "instruction %d of chain %d: condition: expected bool, found %s",
                    step.instruction, step.chain, name_of(step.args[0]->tensor().dtype));
      }
      return Error::Ok;
    }
    default: {
      step.kind = Step::Kind::Free;
      step.name = "FreeCall";
      step.arg_count = step.out_begin = 1;
      step.args = method_.memory_.array<EValue*>(1);
      if (step.args == nullptr) return no_memory();
      step.args[0] = &method_.values_[instruction.instr_args_as_FreeCall()->value_index()];
      return Error::Ok;
    }
  }
}

Error MethodLoader::make_kernel_step(const fb::KernelCall& call, Step& step) {
  const fb::Operator& op = *plan_.operators()->Get(static_cast<std::uint32_t>(call.op_index()));
  char name[kNameBytes];
  const std::string_view overload = view(op.overload());
  std::snprintf(name, sizeof name, "%s%s%s", op.name()->c_str(), overload.empty() ? "" : ".",
                overload.empty() ? "" : op.overload()->c_str());
  const Kernel* kernel = Registry::get().find_kernel(name);
  if (kernel == nullptr) {
    return fail(Error::OperatorMissing, "instruction %d of chain %d: no kernel for %s", step.instruction, step.chain,
                name);
  }
  step.kind = Step::Kind::Kernel;
  step.name = kernel->name;
  step.execute = kernel->execute;
  prepare_[&step - method_.steps_] = kernel->prepare;
  WB_TRY(make_args(call.args(), step));
  strip_results(step);
  return Error::Ok;
}

// A move changes where a value's data is, not what kind of value it is: kernels were prepared for that.
Error MethodLoader::check_move(const Step& step) {
  const EValue& from = *step.args[0];
  const EValue& to = *step.args[1];
  if (from.is_scalar() && to.is_scalar()) return Error::Ok;
  if (&from == &to || (from.is_none() && to.is_none())) return Error::Ok;
  if (!from.is_tensor() || !to.is_tensor()) {
    return fail(Error::InvalidProgram, "instruction %d of chain %d: can't move %s to %s", step.instruction, step.chain,
                name_of(from.tag), name_of(to.tag));
  }
  const Tensor& source = from.tensor();
  const Tensor& target = to.tensor();
  const bool same_sizes =
      source.rank == target.rank && std::memcmp(source.sizes, target.sizes, source.rank * sizeof(std::int32_t)) == 0;
  const bool both_static = source.dynamism == ShapeDynamism::Static && target.dynamism == ShapeDynamism::Static;
  if (source.dtype != target.dtype || source.rank != target.rank ||
      std::memcmp(source.dim_order, target.dim_order, source.rank) != 0 || (both_static && !same_sizes)) {
    return fail(Error::InvalidProgram,
                "instruction %d of chain %d: moves a tensor to one of another dtype, rank, shape or dim order",
                step.instruction, step.chain);
  }
  return Error::Ok;
}

// An output of a delegate is what nothing before it has written.
void MethodLoader::mark_outs_of_delegates() {
  for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
    Step& step = method_.steps_[s];
    if (step.kind == Step::Kind::Delegate) {
      std::uint32_t begin = step.arg_count;
      while (begin != 0 && !written_[index_of(*step.args[begin - 1])] && !readonly_[index_of(*step.args[begin - 1])]) {
        --begin;
      }
      step.out_begin = begin;
    }
    if (step.kind == Step::Kind::JumpFalse || step.kind == Step::Kind::Free) continue;
    for (std::uint32_t a = step.out_begin; a < step.arg_count; ++a) {
      for_each_value(*step.args[a], [&](const EValue& value) { written_[index_of(value)] = true; });
    }
    if (step.kind == Step::Kind::Kernel && step.arg_count != 0 && writes_first_argument(step.name)) {
      written_[index_of(*step.args[0])] = true;
    }
  }
}

void MethodLoader::mark_written() {
  for (std::uint32_t i = 0; i < method_.value_count_; ++i) {
    const EValue& value = method_.values_[i];
    readonly_[i] = value.is_tensor() && method_.storage(value.tensor()) == Storage::Constant;
  }
  for (std::uint32_t i = 0; i < method_.input_count(); ++i) written_[index_of(method_.input(i))] = true;
  mark_outs_of_delegates();
  for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
    const Step& step = method_.steps_[s];
    if (step.kind != Step::Kind::Delegate) continue;
    for (std::uint32_t a = 0; a < step.arg_count; ++a) {
      if (step.args[a]->is_scalar()) written_[index_of(*step.args[a])] = true;  // it may be a size that comes out
    }
  }
  // What a move or a view points to the file's data is as read-only as that.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
      const Step& step = method_.steps_[s];
      if ((step.kind != Step::Kind::Move && !is_view(step)) || step.arg_count < 2) continue;
      const std::uint32_t to = index_of(*step.args[step.arg_count - 1]);
      if (readonly_[index_of(*step.args[0])] && !readonly_[to]) readonly_[to] = changed = true;
    }
  }
}

void MethodLoader::mark_written_inputs() {
  for (std::uint32_t i = 0; i < method_.input_count(); ++i) {
    const EValue* input = &method_.input(i);
    for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
      const Step& step = method_.steps_[s];
      const bool first = step.kind == Step::Kind::Kernel && step.arg_count != 0 && writes_first_argument(step.name);
      if (first && step.args[0] == input) method_.input_written_[i] = true;
      if (step.kind == Step::Kind::JumpFalse || step.kind == Step::Kind::Free) continue;
      // A move or a view of an input is taken for a write: what it points to may be written later.
      if ((step.kind == Step::Kind::Move || is_view(step)) && step.args[0] == input) method_.input_written_[i] = true;
      for (std::uint32_t a = step.out_begin; a < step.arg_count; ++a) {
        for_each_value(*step.args[a], [&](const EValue& out) {
          method_.input_written_[i] = method_.input_written_[i] || &out == input;
        });
      }
    }
  }
}

Error MethodLoader::check_outs(const Step& step) {
  if ((step.kind != Step::Kind::Delegate && step.kind != Step::Kind::Kernel) || is_view(step)) return Error::Ok;
  for (std::uint32_t a = 0; a < step.arg_count; ++a) {
    if (!is_written(step, a)) continue;
    bool refused = false;
    for_each_value(*step.args[a], [&](const EValue& out) { refused = refused || readonly_[index_of(out)]; });
    if (refused) {
      return fail(Error::InvalidProgram, "instruction %d of chain %d (%s) writes to a constant", step.instruction,
                  step.chain, step.name);
    }
    if (step.kind == Step::Kind::Kernel && overlaps_another(step, a)) {
      return fail(
          Error::InvalidProgram,
          "instruction %d of chain %d (%s): the planned memory of what it writes overlaps that of another argument",
          step.instruction, step.chain, step.name);
    }
  }
  return Error::Ok;
}

// A kernel may rely on its outputs being apart from its inputs and from each other. What an in-place operator returns
// is the exception: it is what it wrote.
bool MethodLoader::overlaps_another(const Step& step, std::uint32_t written) {
  bool overlaps = false;
  for_each_tensor(*step.args[written], [&](const Tensor& out) {
    if (method_.storage(out) != Storage::Arena) return;
    const auto* begin = static_cast<const std::byte*>(out.data);
    for (std::uint32_t a = 0; a < step.arg_count; ++a) {
      const bool both_written = is_written(step, a);
      for_each_tensor(*step.args[a], [&](const Tensor& other) {
        if (method_.storage(other) != Storage::Arena || (both_written && &other == &out)) return;
        const auto* other_begin = static_cast<const std::byte*>(other.data);
        const bool same = begin == other_begin && out.capacity == other.capacity;
        if (same && both_written && writes_first_argument(step.name)) return;
        overlaps = overlaps || (begin < other_begin + other.capacity && other_begin < begin + out.capacity);
      });
    }
  });
  return overlaps;
}

Error MethodLoader::find_constants() {
  for (std::uint32_t i = 0; i < method_.value_count_; ++i) {
    const EValue& value = method_.values_[i];
    constant_[i] = !written_[i] && (!value.is_tensor() || method_.storage(value.tensor()) == Storage::Constant);
  }
  constant_[method_.value_count_] = true;
  for (std::uint32_t i = 0; i < method_.value_count_; ++i) {
    EValue& value = method_.values_[i];
    if (value.tag == Tag::TensorList || value.tag == Tag::OptionalTensorList) {
      for (std::uint32_t k = 0; k < value.payload.tensor_list.size; ++k) {
        constant_[i] = constant_[i] && constant_[index_of(*value.payload.tensor_list.items[k])];
      }
    }
    if (value.tag != Tag::IntList) continue;
    IntListRef& list = value.payload.int_list;
    for (std::uint32_t k = 0; k < list.size; ++k) constant_[i] = constant_[i] && constant_[index_of(*list.items[k])];
    (void)list.get();
    list.literal = constant_[i];
  }
  return Error::Ok;
}

// Tensors that get their memory from a move or a view, or when their size is known.
Error MethodLoader::find_late() {
  for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
    Step& step = method_.steps_[s];
    if (step.kind != Step::Kind::Kernel && step.kind != Step::Kind::Delegate) continue;
    const std::uint32_t end = is_view(step) && step.arg_count != 0 ? step.arg_count - 1 : step.arg_count;
    const auto visit_late = [&](auto&& visit) {
      for (std::uint32_t a = 0; a < end; ++a) {
        const bool out = a >= step.out_begin;
        for_each_tensor(*step.args[a], [&](Tensor& tensor) {
          const bool unbound = tensor.dynamism == ShapeDynamism::DynamicUnbound && !out;
          if (unbound || method_.storage(tensor) == Storage::None) visit(tensor);
        });
      }
    };
    visit_late([&](Tensor&) { ++step.late_count; });
    if (step.late_count == 0) continue;
    step.late = method_.memory_.array<Tensor*>(step.late_count);
    if (step.late == nullptr) return no_memory();
    std::uint32_t i = 0;
    visit_late([&](Tensor& tensor) { step.late[i++] = &tensor; });
  }
  return Error::Ok;
}

Error MethodLoader::save_changing() {
  method_.saved_ = method_.memory_.array<Method::Saved>(method_.value_count_);
  bool* moved = method_.memory_.array<bool>(method_.value_count_ + std::size_t{1});
  if (method_.saved_ == nullptr || moved == nullptr) return no_memory();
  for (std::uint32_t s = 0; s < method_.step_count_; ++s) {
    const Step& step = method_.steps_[s];
    if ((step.kind == Step::Kind::Move || is_view(step)) && step.arg_count != 0) {
      moved[index_of(*step.args[step.arg_count - 1])] = true;
    }
  }
  for (std::uint32_t i = 0; i < method_.value_count_; ++i) {
    EValue& value = method_.values_[i];
    const bool scalar = value.is_scalar() && written_[i];
    // A move copies into planned memory; it changes the pointer of what has none. A view always does.
    if (!scalar && !(value.is_tensor() && moved[i])) continue;
    Method::Saved& saved = *new (&method_.saved_[method_.saved_count_++]) Method::Saved();
    saved.value = &value;
    saved.original = value;
    if (value.is_tensor()) {
      saved.data = value.tensor().data;
      saved.capacity = value.tensor().capacity;
    }
  }
  return Error::Ok;
}

}  // namespace wb
