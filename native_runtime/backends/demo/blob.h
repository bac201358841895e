// The instruction list that the demo backends run, as `workbench/backends/demo/bytecode.py` writes it. Little-endian.
//
//   header, values[value_count], instructions[instruction_count], data[data_size]
//
// Values are numbered: the delegate's inputs first, then its outputs, then temporaries and constants. All are float32
// and contiguous. Every value but inputs and constants is written by exactly one instruction, before it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend.h"

namespace wb::demo {

inline constexpr std::uint32_t kMagic = 0x4d444257;  // "WBDM"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr int kMaxBlobRank = 8;
inline constexpr int kDefaultMaxRank = 4;

enum class ValueKind : std::uint8_t { Input = 0, Output = 1, Temporary = 2, Constant = 3 };

enum class Opcode : std::uint16_t { Copy = 0, Sin = 1, Add = 2, Mul = 3, Mm = 4, Linear = 5 };
inline constexpr int kOpcodeCount = 6;

struct BlobHeader {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t value_count;
  std::uint32_t input_count;
  std::uint32_t output_count;
  std::uint32_t instruction_count;
  std::uint64_t data_size;  // bytes
};
static_assert(sizeof(BlobHeader) == 32);

struct BlobValue {
  ValueKind kind;
  std::uint8_t rank;
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t offset;  // of a constant: bytes from the start of the data
  std::int32_t sizes[kMaxBlobRank];
};
static_assert(sizeof(BlobValue) == 48);

struct BlobInstruction {
  Opcode opcode;
  std::uint16_t operand_count;
  std::int32_t debug_id;  // -1: the instruction stands for no node
  std::uint32_t operands[3];
  std::uint32_t result;
  float alpha;
  std::uint32_t reserved;
};
static_assert(sizeof(BlobInstruction) == 32);

// A value while the delegate runs. `data` of inputs and outputs is set at each execution.
struct Value {
  float* data;
  std::int64_t numel;
  std::int32_t sizes[kMaxBlobRank];
  std::uint8_t rank;
  ValueKind kind;
};

struct Plan {
  Value* values;
  const BlobInstruction* instructions;
  std::uint32_t value_count;
  std::uint32_t input_count;
  std::uint32_t output_count;
  std::uint32_t instruction_count;
};

// Checks a blob and lays out its values in memory of the method. Constants are copied to aligned memory, so that the
// blob can be released. `allowed` holds one bit per opcode.
[[nodiscard]] Result<Plan*> build_plan(const BackendInitContext& context, std::span<const std::byte> blob,
                                       std::uint32_t allowed, int max_rank);

// Runs one instruction of a checked plan. All pointers of its values are set.
void run(const Plan& plan, const BlobInstruction& instruction);

// "sin", for messages and for the trace.
[[nodiscard]] const char* name_of(Opcode opcode);

}  // namespace wb::demo
