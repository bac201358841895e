#include "backends/demo/blob.h"

#include <cstring>
#include <new>

namespace wb::demo {
namespace {

// Most that the temporaries of one delegate may take: a blob can't ask for more than a demo could use.
constexpr std::int64_t kMaxTemporaryBytes = std::int64_t{1} << 28;
constexpr std::int64_t kMaxNumel = std::int64_t{1} << 40;

struct Reader {
  const BackendInitContext& context;
  BlobHeader header;
  const std::byte* values;
  const std::byte* instructions;
  const std::byte* data;

  [[nodiscard]] BlobValue value(std::uint32_t index) const {
    BlobValue value;
    std::memcpy(&value, values + std::size_t{index} * sizeof value, sizeof value);
    return value;
  }
};

Result<Reader> open(const BackendInitContext& context, std::span<const std::byte> blob) {
  Reader reader{context, {}, nullptr, nullptr, nullptr};
  BlobHeader& header = reader.header;
  if (blob.size() < sizeof header) {
    return context.fail(Error::InvalidProgram, "the blob has %zu bytes, less than its header", blob.size());
  }
  std::memcpy(&header, blob.data(), sizeof header);
  if (header.magic != kMagic || header.version != kVersion) {
    return context.fail(Error::DelegateInvalidCompatibility,
                        "expected magic 0x%08x version %u, found 0x%08x version %u", kMagic, kVersion, header.magic,
                        header.version);
  }
  const std::uint64_t values_size = std::uint64_t{header.value_count} * sizeof(BlobValue);
  const std::uint64_t instructions_size = std::uint64_t{header.instruction_count} * sizeof(BlobInstruction);
  // The two products stay below 2^38, so that only the size of the data can overflow the sum.
  const std::uint64_t fixed = sizeof header + values_size + instructions_size;
  if (fixed > blob.size() || header.data_size != blob.size() - fixed) {
    return context.fail(
        Error::InvalidProgram, "%u values, %u instructions and %llu bytes of data don't make the blob's %zu bytes",
        header.value_count, header.instruction_count, static_cast<unsigned long long>(header.data_size), blob.size());
  }
  if (header.input_count > header.value_count || header.output_count > header.value_count - header.input_count) {
    return context.fail(Error::InvalidProgram, "%u inputs and %u outputs among %u values", header.input_count,
                        header.output_count, header.value_count);
  }
  reader.values = blob.data() + sizeof header;
  reader.instructions = reader.values + values_size;
  reader.data = reader.instructions + instructions_size;
  return reader;
}

// The kind that a value must have by its number: the argument order of the delegate.
bool kind_fits(const BlobHeader& header, std::uint32_t index, ValueKind kind) {
  if (index < header.input_count) return kind == ValueKind::Input;
  if (index < header.input_count + header.output_count) return kind == ValueKind::Output;
  return kind == ValueKind::Temporary || kind == ValueKind::Constant;
}

Error check_value(const Reader& reader, std::uint32_t index, const BlobValue& source, int max_rank, Value& value) {
  const BackendInitContext& context = reader.context;
  if (!kind_fits(reader.header, index, source.kind)) {
    return context.fail(Error::InvalidProgram, "value %u is of kind %u", index, static_cast<unsigned>(source.kind));
  }
  if (source.rank > max_rank) {
    return context.fail(Error::InvalidProgram, "value %u: expected rank of at most %d (max_value), found %u", index,
                        max_rank, source.rank);
  }
  value = {nullptr, 1, {}, source.rank, source.kind};
  for (int d = 0; d < source.rank; ++d) {
    value.sizes[d] = source.sizes[d];
    if (source.sizes[d] < 0 || (source.sizes[d] != 0 && value.numel > kMaxNumel / source.sizes[d])) {
      return context.fail(Error::InvalidProgram, "value %u: size %d in dimension %d is out of range", index,
                          source.sizes[d], d);
    }
    value.numel *= source.sizes[d];
  }
  if (source.kind != ValueKind::Constant) return Error::Ok;
  const std::uint64_t bytes = static_cast<std::uint64_t>(value.numel) * sizeof(float);
  if (source.offset > reader.header.data_size || bytes > reader.header.data_size - source.offset) {
    return context.fail(Error::InvalidProgram, "constant %u: %llu bytes at offset %llu, found %llu bytes of data",
                        index, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(source.offset),
                        static_cast<unsigned long long>(reader.header.data_size));
  }
  return Error::Ok;
}

bool same_sizes(const Value& a, const Value& b) {
  if (a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != b.sizes[d]) return false;
  }
  return true;
}

// result[i] = broadcast(a[i], b[i]), dimensions aligned at the end.
bool broadcasts_to(const Value& a, const Value& b, const Value& result) {
  if (result.rank != (a.rank > b.rank ? a.rank : b.rank)) return false;
  for (int back = 1; back <= result.rank; ++back) {
    const std::int32_t x = back <= a.rank ? a.sizes[a.rank - back] : 1;
    const std::int32_t y = back <= b.rank ? b.sizes[b.rank - back] : 1;
    if (x != y && x != 1 && y != 1) return false;
    if (result.sizes[result.rank - back] != (x == 1 ? y : x)) return false;
  }
  return true;
}

// a (M, K), b (K, N) -> (M, N)
bool multiplies_to(const Value& a, const Value& b, const Value& result) {
  return a.rank == 2 && b.rank == 2 && result.rank == 2 && a.sizes[1] == b.sizes[0] && result.sizes[0] == a.sizes[0] &&
         result.sizes[1] == b.sizes[1];
}

// x (..., K), weight (N, K), bias (N) or none -> (..., N)
bool is_linear(const Value& x, const Value& weight, const Value* bias, const Value& result) {
  if (x.rank < 1 || weight.rank != 2 || result.rank != x.rank) return false;
  const int last = x.rank - 1;
  for (int d = 0; d < last; ++d) {
    if (x.sizes[d] != result.sizes[d]) return false;
  }
  if (x.sizes[last] != weight.sizes[1] || result.sizes[last] != weight.sizes[0]) return false;
  return bias == nullptr || (bias->rank == 1 && bias->sizes[0] == weight.sizes[0]);
}

bool shapes_fit(const BlobInstruction& instruction, const Value* const operands[3], const Value& result) {
  switch (instruction.opcode) {
    case Opcode::Copy:
    case Opcode::Sin: return instruction.operand_count == 1 && same_sizes(*operands[0], result);
    case Opcode::Add:
    case Opcode::Mul: return instruction.operand_count == 2 && broadcasts_to(*operands[0], *operands[1], result);
    case Opcode::Mm: return instruction.operand_count == 2 && multiplies_to(*operands[0], *operands[1], result);
    case Opcode::Linear: {
      if (instruction.operand_count != 2 && instruction.operand_count != 3) return false;
      return is_linear(*operands[0], *operands[1], instruction.operand_count == 3 ? operands[2] : nullptr, result);
    }
  }
  return false;
}

// `written` holds for each value whether it has its content at this point.
Error check_instruction(const Reader& reader, const Plan& plan, std::uint32_t index, std::uint32_t allowed,
                        bool* written) {
  const BackendInitContext& context = reader.context;
  const BlobInstruction& instruction = plan.instructions[index];
  const auto opcode = static_cast<unsigned>(instruction.opcode);
  if (opcode >= kOpcodeCount || (allowed >> opcode & 1U) == 0) {
    return context.fail(Error::NotSupported, "instruction %u: opcode %u is not one of this backend", index, opcode);
  }
  const Value* operands[3] = {};
  if (instruction.operand_count > 3) {
    return context.fail(Error::InvalidProgram, "instruction %u: %u operands", index, instruction.operand_count);
  }
  for (int i = 0; i < instruction.operand_count; ++i) {
    const std::uint32_t operand = instruction.operands[i];
    if (operand >= plan.value_count || !written[operand]) {
      return context.fail(Error::InvalidProgram, "instruction %u (%s): operand %d, value %u, has no content", index,
                          name_of(instruction.opcode), i, operand);
    }
    operands[i] = &plan.values[operand];
  }
  const std::uint32_t result = instruction.result;
  if (result >= plan.value_count || written[result]) {
    return context.fail(Error::InvalidProgram, "instruction %u (%s): value %u can't be written", index,
                        name_of(instruction.opcode), result);
  }
  if (!shapes_fit(instruction, operands, plan.values[result])) {
    return context.fail(Error::InvalidProgram, "instruction %u (%s): the shapes of its values don't fit together",
                        index, name_of(instruction.opcode));
  }
  written[result] = true;
  return Error::Ok;
}

Error check_instructions(const Reader& reader, const Plan& plan, std::uint32_t allowed) {
  const BackendInitContext& context = reader.context;
  auto* written = static_cast<bool*>(context.allocate(plan.value_count + 1, 1));
  if (written == nullptr)
    return context.fail(Error::MemoryAllocationFailed, "no memory for %u flags", plan.value_count);
  for (std::uint32_t i = 0; i < plan.value_count; ++i) {
    const ValueKind kind = plan.values[i].kind;
    written[i] = kind == ValueKind::Input || kind == ValueKind::Constant;
  }
  for (std::uint32_t i = 0; i < plan.instruction_count; ++i) {
    WB_TRY(check_instruction(reader, plan, i, allowed, written));
  }
  for (std::uint32_t i = 0; i < plan.output_count; ++i) {
    if (!written[plan.input_count + i]) return context.fail(Error::InvalidProgram, "output %u is never written", i);
  }
  return Error::Ok;
}

// Memory for temporaries and constants; the constants are filled in.
Error place(const Reader& reader, const Plan& plan) {
  const BackendInitContext& context = reader.context;
  std::int64_t temporaries = 0;
  for (std::uint32_t i = 0; i < plan.value_count; ++i) {
    Value& value = plan.values[i];
    if (value.kind != ValueKind::Temporary && value.kind != ValueKind::Constant) continue;
    const std::int64_t bytes = value.numel * static_cast<std::int64_t>(sizeof(float));
    if (value.kind == ValueKind::Temporary) {
      if (bytes > kMaxTemporaryBytes - temporaries) {
        return context.fail(Error::OutOfResources, "the temporaries take more than %lld bytes",
                            static_cast<long long>(kMaxTemporaryBytes));
      }
      temporaries += bytes;
    }
    value.data = static_cast<float*>(context.allocate(static_cast<std::size_t>(bytes == 0 ? 4 : bytes)));
    if (value.data == nullptr) {
      return context.fail(Error::MemoryAllocationFailed, "no memory for the %lld bytes of value %u",
                          static_cast<long long>(bytes), i);
    }
    if (value.kind == ValueKind::Constant && bytes != 0) {
      std::memcpy(value.data, reader.data + reader.value(i).offset, static_cast<std::size_t>(bytes));
    }
  }
  return Error::Ok;
}

}  // namespace

const char* name_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::Copy: return "copy";
    case Opcode::Sin: return "sin";
    case Opcode::Add: return "add";
    case Opcode::Mul: return "mul";
    case Opcode::Mm: return "mm";
    case Opcode::Linear: return "linear";
  }
  return "unknown";
}

Result<Plan*> build_plan(const BackendInitContext& context, std::span<const std::byte> blob, std::uint32_t allowed,
                         int max_rank) {
  WB_ASSIGN(const Reader reader, open(context, blob));
  const BlobHeader& header = reader.header;
  void* memory = context.allocate(sizeof(Plan), alignof(Plan));
  void* values = context.allocate((std::size_t{header.value_count} + 1) * sizeof(Value), alignof(Value));
  void* instructions =
      context.allocate((std::size_t{header.instruction_count} + 1) * sizeof(BlobInstruction), alignof(BlobInstruction));
  if (memory == nullptr || values == nullptr || instructions == nullptr) {
    return context.fail(Error::MemoryAllocationFailed, "no memory for %u values and %u instructions",
                        header.value_count, header.instruction_count);
  }
  std::memcpy(instructions, reader.instructions, std::size_t{header.instruction_count} * sizeof(BlobInstruction));
  Plan* plan = new (memory) Plan{static_cast<Value*>(values), static_cast<const BlobInstruction*>(instructions),
                                 header.value_count,          header.input_count,
                                 header.output_count,         header.instruction_count};
  for (std::uint32_t i = 0; i < header.value_count; ++i) {
    WB_TRY(check_value(reader, i, reader.value(i), max_rank, *new (&plan->values[i]) Value));
  }
  WB_TRY(check_instructions(reader, *plan, allowed));
  WB_TRY(place(reader, *plan));
  return plan;
}

}  // namespace wb::demo
