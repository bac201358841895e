#include <cstdarg>
#include <limits>

#include "core/scalar_type.h"
#include "core/tensor.h"
#include "program/program.h"
#include "program/validate.h"

namespace wb {
namespace {

using ull = unsigned long long;

// Checks one execution plan. Each function reports what is wrong, prefixed by the method's name.
class MethodValidator {
 public:
  MethodValidator(const Program& program, const fb::ExecutionPlan& plan, Diagnostic& diagnostic)
      : program_(program), root_(program.root()), plan_(plan), diagnostic_(diagnostic) {}

  Error run() {
    WB_TRY(check_arenas());
    for (std::uint32_t i = 0; i < count(plan_.values()); ++i) WB_TRY(check_value(i));
    WB_TRY(check_indices(plan_.inputs(), "inputs"));
    WB_TRY(check_indices(plan_.outputs(), "outputs"));
    for (std::uint32_t i = 0; i < count(plan_.operators()); ++i) WB_TRY(check_operator(i));
    for (std::uint32_t i = 0; i < count(plan_.delegates()); ++i) WB_TRY(check_delegate(i));
    if (count(plan_.chains()) == 0) return fail("has no chain of instructions");
    for (std::uint32_t i = 0; i < count(plan_.chains()); ++i) WB_TRY(check_chain(i));
    return Error::Ok;
  }

 private:
  __attribute__((format(printf, 2, 3))) Error fail(const char* format, ...) {
    diagnostic_.add("method %s", plan_.name()->c_str());
    std::va_list args;
    va_start(args, format);
    diagnostic_.vadd(format, args);
    va_end(args);
    return Error::InvalidProgram;
  }

  Error check_arenas() {
    if (!is_aligned(plan_.non_const_buffer_sizes())) return fail("non_const_buffer_sizes is not aligned to 8 bytes");
    for (std::uint32_t i = 1; i < count(plan_.non_const_buffer_sizes()); ++i) {
      const std::int64_t size = plan_.non_const_buffer_sizes()->Get(i);
      if (size < 0) return fail("non_const_buffer_sizes[%u] is %lld", i, static_cast<long long>(size));
    }
    for (std::uint32_t i = 0; i < count(plan_.non_const_buffer_device()); ++i) {
      if (plan_.non_const_buffer_device()->Get(i)->device_type() != fb::DeviceType::CPU) {
        (void)fail("arena %d is on a device that this runtime does not have",
                   plan_.non_const_buffer_device()->Get(i)->buffer_idx());
        return Error::NotSupported;
      }
    }
    return Error::Ok;
  }

  [[nodiscard]] bool is_value(std::int64_t index) const { return index >= 0 && index < count(plan_.values()); }

  Error check_value(std::uint32_t index) {
    const fb::EValue* value = plan_.values()->Get(index);
    if (value->val_type() != fb::KernelTypes::NONE && value->val() == nullptr) return fail("value %u is empty", index);
    switch (value->val_type()) {
      case fb::KernelTypes::Null:
      case fb::KernelTypes::Int:
      case fb::KernelTypes::Bool:
      case fb::KernelTypes::Double: return Error::Ok;
      case fb::KernelTypes::String:
        return value->val_as_String()->string_val() == nullptr ? fail("value %u: a string without text", index)
                                                               : Error::Ok;
      case fb::KernelTypes::Tensor: return check_tensor(index, *value->val_as_Tensor());
      case fb::KernelTypes::IntList:
        if (!is_aligned(value->val_as_IntList()->items())) return fail("value %u is not aligned to 8 bytes", index);
        return check_list(index, value->val_as_IntList()->items(), fb::KernelTypes::Int);
      case fb::KernelTypes::DoubleList:
        return is_aligned(value->val_as_DoubleList()->items()) ? Error::Ok
                                                               : fail("value %u is not aligned to 8 bytes", index);
      case fb::KernelTypes::BoolList: return Error::Ok;
      case fb::KernelTypes::TensorList:
        return check_list(index, value->val_as_TensorList()->items(), fb::KernelTypes::Tensor);
      case fb::KernelTypes::OptionalTensorList:
        return check_list(index, value->val_as_OptionalTensorList()->items(), fb::KernelTypes::Tensor, true);
      default: return fail("value %u has the unknown type %u", index, static_cast<unsigned>(value->val_type()));
    }
  }

  template <typename T>
  Error check_list(std::uint32_t index, const flatbuffers::Vector<T>* items, fb::KernelTypes expected,
                   bool optional = false) {
    for (std::uint32_t i = 0; i < count(items); ++i) {
      const std::int64_t item = items->Get(i);
      if (optional && item == -1) continue;
      if (!is_value(item)) return fail("value %u: entry %u is no value: %lld", index, i, static_cast<long long>(item));
      const fb::KernelTypes found = plan_.values()->Get(static_cast<flatbuffers::uoffset_t>(item))->val_type();
      const bool null_allowed = optional && found == fb::KernelTypes::Null;
      if (found != expected && !null_allowed) {
        return fail("value %u: entry %u is value %lld: expected %s, found %s", index, i, static_cast<long long>(item),
                    fb::EnumNameKernelTypes(expected), fb::EnumNameKernelTypes(found));
      }
    }
    return Error::Ok;
  }

  Error check_tensor(std::uint32_t index, const fb::Tensor& tensor) {
    const auto dtype = static_cast<ScalarType>(tensor.scalar_type());
    if (!is_valid(dtype)) return fail("value %u: unknown scalar type %d", index, static_cast<int>(dtype));
    const std::uint32_t rank = count(tensor.sizes());
    if (rank > static_cast<std::uint32_t>(kMaxRank)) {
      return fail("value %u: rank %u, at most %d are supported", index, rank, kMaxRank);
    }
    if (count(tensor.dim_order()) != rank) {
      return fail("value %u: %u sizes but %u entries of dim_order", index, rank, count(tensor.dim_order()));
    }
    std::uint32_t seen = 0;
    for (std::uint32_t d = 0; d < rank; ++d) {
      const std::uint32_t dim = tensor.dim_order()->Get(d);
      if (dim >= rank || (seen & (1U << dim)) != 0) return fail("value %u: dim_order is no permutation", index);
      seen |= 1U << dim;
    }
    if (tensor.storage_offset() != 0) return fail("value %u: storage_offset must be 0", index);
    if (tensor.shape_dynamism() < fb::TensorShapeDynamism::STATIC ||
        tensor.shape_dynamism() > fb::TensorShapeDynamism::DYNAMIC_UNBOUND) {
      return fail("value %u: unknown shape_dynamism %d", index, static_cast<int>(tensor.shape_dynamism()));
    }
    std::uint64_t nbytes = 0;
    if (!byte_size(tensor, element_size(dtype), &nbytes)) {
      return fail("value %u: a size is negative or the tensor is too large", index);
    }
    return check_storage(index, tensor, nbytes);
  }

  // False for negative sizes and when the bytes don't fit 63 bits; a zero-size dimension does not hide an overflow.
  static bool byte_size(const fb::Tensor& tensor, std::uint64_t element, std::uint64_t* nbytes) {
    std::uint64_t product = element;
    bool empty = false;
    for (std::uint32_t d = 0; d < count(tensor.sizes()); ++d) {
      const std::int32_t size = tensor.sizes()->Get(d);
      if (size < 0) return false;
      if (size == 0) {
        empty = true;
        continue;
      }
      if (product >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / static_cast<unsigned>(size)) {
        return false;
      }
      product *= static_cast<unsigned>(size);
    }
    *nbytes = empty ? 0 : product;
    return true;
  }

  Error check_storage(std::uint32_t index, const fb::Tensor& tensor, std::uint64_t nbytes) {
    const fb::AllocationDetails* allocation = tensor.allocation_info();
    if (allocation != nullptr) {
      const std::uint64_t offset =
          (std::uint64_t{allocation->memory_offset_high()} << 32) | allocation->memory_offset_low();
      const std::uint32_t id = allocation->memory_id();
      if (id == 0 || id >= count(plan_.non_const_buffer_sizes())) {
        return fail("value %u: planned in arena %u, the method has %u", index, id,
                    count(plan_.non_const_buffer_sizes()));
      }
      const auto size = static_cast<std::uint64_t>(plan_.non_const_buffer_sizes()->Get(id));
      if (offset > size || nbytes > size - offset) {
        return fail("value %u: planned %llu bytes at %llu of arena %u, which has %llu", index, static_cast<ull>(nbytes),
                    static_cast<ull>(offset), id, static_cast<ull>(size));
      }
      if (offset % element_size(static_cast<ScalarType>(tensor.scalar_type())) != 0) {
        return fail("value %u: offset %llu is not aligned to its element", index, static_cast<ull>(offset));
      }
    }
    const fb::ExtraTensorInfo* extra = tensor.extra_tensor_info();
    if (extra != nullptr && extra->location() == fb::TensorDataLocation::EXTERNAL) {
      return view(extra->fully_qualified_name()).empty() ? fail("value %u: external data without a name", index)
                                                         : Error::Ok;
    }
    if (tensor.data_buffer_idx() == 0) return Error::Ok;
    return allocation == nullptr ? check_constant(index, tensor, nbytes) : check_initial(index, tensor, nbytes);
  }

  Error check_piece(std::uint32_t index, const fb::Tensor& tensor, const fb::SubsegmentOffsets* offsets,
                    std::uint64_t nbytes, const char* what) {
    const std::uint32_t piece = tensor.data_buffer_idx();
    if (offsets == nullptr || piece >= count(offsets->offsets())) {
      return fail("value %u: %s %u of %u", index, what, piece, offsets == nullptr ? 0 : count(offsets->offsets()));
    }
    const std::uint64_t size = root_.segments()->Get(offsets->segment_index())->size();
    const std::uint64_t offset = offsets->offsets()->Get(piece);
    if (nbytes > size - offset) {
      return fail("value %u: needs %llu bytes of %s %u, which has %llu up to the end of its segment", index,
                  static_cast<ull>(nbytes), what, piece, static_cast<ull>(size - offset));
    }
    const auto address = reinterpret_cast<std::uintptr_t>(program_.segment(offsets->segment_index()).data()) + offset;
    if (nbytes != 0 && address % element_size(static_cast<ScalarType>(tensor.scalar_type())) != 0) {
      return fail("value %u: %s %u is not aligned to its element", index, what, piece);
    }
    return Error::Ok;
  }

  Error check_constant(std::uint32_t index, const fb::Tensor& tensor, std::uint64_t nbytes) {
    const auto* inlined = root_.constant_buffer();
    if (count(inlined) == 0) return check_piece(index, tensor, root_.constant_segment(), nbytes, "constant");
    if (tensor.data_buffer_idx() >= inlined->size()) {
      return fail("value %u: constant %u of %u", index, tensor.data_buffer_idx(), inlined->size());
    }
    const auto* storage = inlined->Get(tensor.data_buffer_idx())->storage();
    if (nbytes > (storage == nullptr ? 0 : storage->size())) {
      return fail("value %u: needs %llu bytes, its constant has %u", index, static_cast<ull>(nbytes),
                  storage == nullptr ? 0 : storage->size());
    }
    return Error::Ok;
  }

  Error check_initial(std::uint32_t index, const fb::Tensor& tensor, std::uint64_t nbytes) {
    const fb::ExtraTensorInfo* extra = tensor.extra_tensor_info();
    const std::uint64_t segments = extra == nullptr ? 0 : extra->mutable_data_segments_idx();
    if (segments >= count(root_.mutable_data_segments())) {
      return fail("value %u: initial state in mutable_data_segments[%llu] of %u", index, static_cast<ull>(segments),
                  count(root_.mutable_data_segments()));
    }
    return check_piece(index, tensor, root_.mutable_data_segments()->Get(static_cast<flatbuffers::uoffset_t>(segments)),
                       nbytes, "initial state");
  }

  Error check_indices(const flatbuffers::Vector<std::int32_t>* indices, const char* what) {
    for (std::uint32_t i = 0; i < count(indices); ++i) {
      if (!is_value(indices->Get(i))) {
        return fail("%s[%u] is value %d of %u", what, i, indices->Get(i), count(plan_.values()));
      }
    }
    return Error::Ok;
  }

  Error check_operator(std::uint32_t index) {
    const fb::Operator* op = plan_.operators()->Get(index);
    const std::size_t length = view(op->name()).size() + 1 + view(op->overload()).size();
    if (view(op->name()).empty()) return fail("operator %u has no name", index);
    return length >= 100 ? fail("operator %u: its name has %zu bytes, at most 99 are allowed", index, length)
                         : Error::Ok;
  }

  Error check_delegate(std::uint32_t index) {
    const fb::BackendDelegate* delegate = plan_.delegates()->Get(index);
    if (view(delegate->id()).empty()) return fail("delegate %u has no backend id", index);
    const fb::BackendDelegateDataReference* data = delegate->processed();
    if (data == nullptr) return fail("delegate %u has no data", index);
    const bool inlined = data->location() == fb::DataLocation::INLINE;
    if (!inlined && data->location() != fb::DataLocation::SEGMENT) return fail("delegate %u: unknown location", index);
    const std::uint32_t limit = inlined ? count(root_.backend_delegate_data()) : count(root_.segments());
    if (data->index() >= limit) {
      return fail("delegate %u: its data is %s %u of %u", index, inlined ? "inline blob" : "segment", data->index(),
                  limit);
    }
    for (std::uint32_t i = 0; i < count(delegate->compile_specs()); ++i) {
      if (delegate->compile_specs()->Get(i)->key() == nullptr) {
        return fail("delegate %u: compile spec %u has no key", index, i);
      }
    }
    return Error::Ok;
  }

  Error check_chain(std::uint32_t chain) {
    const auto* instructions = plan_.chains()->Get(chain)->instructions();
    for (std::uint32_t i = 0; i < count(instructions); ++i) {
      if (check_instruction(*instructions->Get(i), count(instructions)) == Error::Ok) continue;
      return fail("in instruction %u of chain %u", i, chain);
    }
    return Error::Ok;
  }

  Error check_instruction(const fb::Instruction& instruction, std::uint32_t instruction_count) {
    if (instruction.instr_args() == nullptr) return fail("an instruction without arguments");
    switch (instruction.instr_args_type()) {
      case fb::InstructionArguments::KernelCall: {
        const auto* call = instruction.instr_args_as_KernelCall();
        if (call->op_index() < 0 || static_cast<std::uint32_t>(call->op_index()) >= count(plan_.operators())) {
          return fail("operator %d of %u", call->op_index(), count(plan_.operators()));
        }
        return check_indices(call->args(), "args");
      }
      case fb::InstructionArguments::DelegateCall: {
        const auto* call = instruction.instr_args_as_DelegateCall();
        if (call->delegate_index() < 0 ||
            static_cast<std::uint32_t>(call->delegate_index()) >= count(plan_.delegates())) {
          return fail("delegate %d of %u", call->delegate_index(), count(plan_.delegates()));
        }
        return check_indices(call->args(), "args");
      }
      case fb::InstructionArguments::MoveCall: {
        const auto* call = instruction.instr_args_as_MoveCall();
        return is_value(call->move_from()) && is_value(call->move_to())
                   ? Error::Ok
                   : fail("moves value %d to value %d of %u", call->move_from(), call->move_to(),
                          count(plan_.values()));
      }
      case fb::InstructionArguments::JumpFalseCall: {
        const auto* call = instruction.instr_args_as_JumpFalseCall();
        if (call->destination_instruction() < 0 ||
            static_cast<std::uint32_t>(call->destination_instruction()) > instruction_count) {
          return fail("jumps to instruction %d of %u", call->destination_instruction(), instruction_count);
        }
        if (!is_value(call->cond_value_index())) return fail("condition is value %d", call->cond_value_index());
        const auto type = plan_.values()->Get(static_cast<std::uint32_t>(call->cond_value_index()))->val_type();
        return type == fb::KernelTypes::Bool || type == fb::KernelTypes::Tensor
                   ? Error::Ok
                   : fail("condition: expected Bool or Tensor, found %s", fb::EnumNameKernelTypes(type));
      }
      case fb::InstructionArguments::FreeCall: {
        const auto* call = instruction.instr_args_as_FreeCall();
        return is_value(call->value_index()) ? Error::Ok : fail("frees value %d", call->value_index());
      }
      default: return fail("unknown kind %u", static_cast<unsigned>(instruction.instr_args_type()));
    }
  }

  const Program& program_;
  const fb::Program& root_;
  const fb::ExecutionPlan& plan_;
  Diagnostic& diagnostic_;
};

}  // namespace

Error validate_method(const Program& program, std::size_t index, Diagnostic& diagnostic) {
  return MethodValidator(program, program.method_at(index), diagnostic).run();
}

}  // namespace wb
