#include "fuzz/mutate.h"

#include <cstring>

#include "core/error.h"
#include "program/program.h"

namespace wb::fuzz {
namespace {

// Kinds of fields, so that one can be set to the value of another of its kind.
enum Kind : std::uint8_t {
  kSize,
  kDimOrder,
  kValueIndex,
  kOperatorIndex,
  kInstructionIndex,
  kBufferIndex,
  kOffset,
  kArena,
  kEnum,
  kNumber,
};

constexpr std::uint64_t kInteresting[] = {0,
                                          1,
                                          2,
                                          7,
                                          16,
                                          255,
                                          256,
                                          65535,
                                          65536,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0xfffffffe,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0xffffffffffffffff};

// Where a field of a table stands; null when it is absent.
template <typename T>
const std::uint8_t* address_of(const T& table, flatbuffers::voffset_t field) {
  return reinterpret_cast<const flatbuffers::Table*>(&table)->GetAddressOf(field);
}

}  // namespace

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

Mutator::Mutator(std::vector<std::byte> original) : original_(std::move(original)) {
  structured_.push_back({0, original_.size()});
  find_fields();
}

void Mutator::add(const void* address, std::uint8_t width, std::uint8_t kind) {
  if (address == nullptr) return;
  const auto offset = static_cast<const std::byte*>(address) - original_.data();
  fields_.push_back({static_cast<std::size_t>(offset), width, kind});
}

template <typename Plan>
void Mutator::add_plan(const Plan& plan) {
  add_vector(plan.inputs(), kValueIndex);
  add_vector(plan.outputs(), kValueIndex);
  add_vector(plan.non_const_buffer_sizes(), kOffset);
  for (std::uint32_t i = 0; i < count(plan.values()); ++i) {
    const fb::EValue& value = *plan.values()->Get(i);
    add(address_of(value, fb::EValue::VT_VAL_TYPE), 1, kEnum);
    switch (value.val_type()) {
      case fb::KernelTypes::Tensor: {
        const fb::Tensor& tensor = *value.val_as_Tensor();
        add_vector(tensor.sizes(), kSize);
        add_vector(tensor.dim_order(), kDimOrder);
        add(address_of(tensor, fb::Tensor::VT_SCALAR_TYPE), 1, kEnum);
        add(address_of(tensor, fb::Tensor::VT_SHAPE_DYNAMISM), 1, kEnum);
        add(address_of(tensor, fb::Tensor::VT_DATA_BUFFER_IDX), 4, kBufferIndex);
        if (const auto* allocation = tensor.allocation_info(); allocation != nullptr) {
          add(address_of(*allocation, fb::AllocationDetails::VT_MEMORY_ID), 4, kArena);
          add(address_of(*allocation, fb::AllocationDetails::VT_MEMORY_OFFSET_LOW), 4, kOffset);
          add(address_of(*allocation, fb::AllocationDetails::VT_MEMORY_OFFSET_HIGH), 4, kOffset);
        }
        break;
      }
      case fb::KernelTypes::Int: add(address_of(*value.val_as_Int(), fb::Int::VT_INT_VAL), 8, kNumber); break;
      case fb::KernelTypes::Bool: add(address_of(*value.val_as_Bool(), fb::Bool::VT_BOOL_VAL), 1, kNumber); break;
      case fb::KernelTypes::Double:
        add(address_of(*value.val_as_Double(), fb::Double::VT_DOUBLE_VAL), 8, kNumber);
        break;
      case fb::KernelTypes::IntList: add_vector(value.val_as_IntList()->items(), kValueIndex); break;
      case fb::KernelTypes::TensorList: add_vector(value.val_as_TensorList()->items(), kValueIndex); break;
      case fb::KernelTypes::OptionalTensorList:
        add_vector(value.val_as_OptionalTensorList()->items(), kValueIndex);
        break;
      default: break;
    }
  }
  for (std::uint32_t c = 0; c < count(plan.chains()); ++c) {
    const auto* instructions = plan.chains()->Get(c)->instructions();
    for (std::uint32_t i = 0; i < count(instructions); ++i) {
      const fb::Instruction& instruction = *instructions->Get(i);
      add(address_of(instruction, fb::Instruction::VT_INSTR_ARGS_TYPE), 1, kEnum);
      if (const auto* kernel = instruction.instr_args_as_KernelCall(); kernel != nullptr) {
        add(address_of(*kernel, fb::KernelCall::VT_OP_INDEX), 4, kOperatorIndex);
        add_vector(kernel->args(), kValueIndex);
      } else if (const auto* delegate = instruction.instr_args_as_DelegateCall(); delegate != nullptr) {
        add(address_of(*delegate, fb::DelegateCall::VT_DELEGATE_INDEX), 4, kOperatorIndex);
        add_vector(delegate->args(), kValueIndex);
      } else if (const auto* move = instruction.instr_args_as_MoveCall(); move != nullptr) {
        add(address_of(*move, fb::MoveCall::VT_MOVE_FROM), 4, kValueIndex);
        add(address_of(*move, fb::MoveCall::VT_MOVE_TO), 4, kValueIndex);
      } else if (const auto* jump = instruction.instr_args_as_JumpFalseCall(); jump != nullptr) {
        add(address_of(*jump, fb::JumpFalseCall::VT_COND_VALUE_INDEX), 4, kValueIndex);
        add(address_of(*jump, fb::JumpFalseCall::VT_DESTINATION_INSTRUCTION), 4, kInstructionIndex);
      }
    }
  }
}

void Mutator::find_fields() {
  Diagnostic diagnostic;
  const auto program = Program::from_bytes(original_, diagnostic);
  if (!program.ok() || program.get()->source().bytes().data() != original_.data()) return;
  const fb::Program& root = program.get()->root();
  for (std::uint32_t i = 0; i < count(root.segments()); ++i) {
    const fb::DataSegment& segment = *root.segments()->Get(i);
    add(address_of(segment, fb::DataSegment::VT_OFFSET), 8, kOffset);
    add(address_of(segment, fb::DataSegment::VT_SIZE), 8, kOffset);
    if (segment.size() != 0) {
      const auto begin = static_cast<std::size_t>(program.get()->segment(i).data() - original_.data());
      structured_[0].size = begin < structured_[0].size ? begin : structured_[0].size;
    }
  }
  if (root.constant_segment() != nullptr) {
    add(address_of(*root.constant_segment(), fb::SubsegmentOffsets::VT_SEGMENT_INDEX), 4, kBufferIndex);
    add_vector(root.constant_segment()->offsets(), kOffset);
  }
  for (std::size_t i = 0; i < program.get()->method_count(); ++i) {
    const fb::ExecutionPlan& plan = program.get()->method_at(i);
    add_plan(plan);
    for (std::uint32_t d = 0; d < count(plan.delegates()); ++d) {
      const fb::BackendDelegate& delegate = *plan.delegates()->Get(d);
      add_delegate(view(delegate.id()), program.get()->delegate_data(delegate));
    }
  }
}

// The flatbuffer of the program or, as often, that of one of its delegates.
const Mutator::Range& Mutator::random_range(Random& random, std::size_t end) const {
  const std::size_t more = structured_.size() - 1;
  const Range& range = structured_[more == 0 || random.below(2) == 0 ? 0 : 1 + random.below(more)];
  return range.offset + range.size <= end ? range : structured_[0];
}

void Mutator::change_field(std::vector<std::byte>& bytes, Random& random) const {
  const Field& field = fields_[random.below(fields_.size())];
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + field.offset, field.width);
  switch (random.below(4)) {
    case 0: value = kInteresting[random.below(std::size(kInteresting))]; break;
    case 1: value += random.below(2) == 0 ? 1 + random.below(3) : ~random.below(3); break;
    case 2: value = random.below(24); break;
    default: {
      for (int tries = 0; tries < 32; ++tries) {
        const Field& other = fields_[random.below(fields_.size())];
        if (other.kind != field.kind || other.width != field.width) continue;
        std::memcpy(&value, bytes.data() + other.offset, other.width);
        break;
      }
      break;
    }
  }
  std::memcpy(bytes.data() + field.offset, &value, field.width);
}

void Mutator::change_bytes(std::vector<std::byte>& bytes, Random& random) const {
  const Range& range = random_range(random, bytes.size());
  const std::size_t limit = range.offset >= bytes.size()               ? 0
                            : range.size < bytes.size() - range.offset ? range.size
                                                                       : bytes.size() - range.offset;
  if (limit < 16) return;
  std::byte* first = bytes.data() + range.offset;
  switch (random.below(4)) {
    case 0: first[random.below(limit)] ^= std::byte{1} << static_cast<int>(random.below(8)); break;
    case 1: first[random.below(limit)] = static_cast<std::byte>(random.next()); break;
    case 2: {
      const std::size_t width = std::size_t{1} << random.below(4);
      const std::size_t offset = random.below(limit / width) * width;
      const std::uint64_t value = kInteresting[random.below(std::size(kInteresting))];
      std::memcpy(first + offset, &value, width);
      break;
    }
    default: {
      const std::size_t length = 1 + random.below(limit < 64 ? limit / 2 : 32);
      const std::size_t from = random.below(limit - length);
      const std::size_t to = random.below(limit - length);
      std::memmove(first + to, first + from, length);
      break;
    }
  }
}

std::vector<std::byte> Mutator::mutate(std::uint64_t seed) const {
  Random random(seed);
  std::vector<std::byte> bytes = original_;
  const std::uint64_t changes = 1 + random.below(random.below(4) == 0 ? 8 : 2);
  for (std::uint64_t i = 0; i < changes; ++i) {
    const std::uint64_t way = random.below(100);
    if (way < 70 && !fields_.empty() && bytes.size() == original_.size()) {
      change_field(bytes, random);
    } else if (way < 97) {
      change_bytes(bytes, random);
    } else {
      bytes.resize(random.below(bytes.size() + 1));
    }
  }
  return bytes;
}

}  // namespace wb::fuzz
