// What loading makes of a method: arrays without indirection that execution walks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend.h"
#include "core/evalue.h"
#include "core/kernel.h"

namespace wb {

enum class InstructionKind : std::uint8_t { Kernel, Delegate, Move, JumpFalse, Free };

struct Instruction {
  InstructionKind kind = InstructionKind::Free;
  const char* name = "";                // operator, or backend id; lives as long as the method
  KernelFunction execute = nullptr;     // Kernel
  KernelContext* context = nullptr;     // Kernel
  std::uint32_t delegate = 0;           // Delegate
  EValue* const* args = nullptr;        // Kernel, Delegate: without the repetition of outputs at the end
  std::uint32_t arg_count = 0;
  std::uint32_t first_output = 0;       // Kernel: args from here on are written
  EValue* from = nullptr;               // Move
  EValue* to = nullptr;                 // Move
  const EValue* condition = nullptr;    // JumpFalse
  std::uint32_t destination = 0;        // JumpFalse
};

struct Delegate {
  Backend* backend = nullptr;
  DelegateHandle* handle = nullptr;
  bool initialized = false;
};

// How a value is used, found once before kernels are prepared.
enum ValueFlags : std::uint8_t {
  kWritten = 1,      // some instruction may change it
  kStoredData = 2,   // a tensor whose data is constant data of the program
  kReferenced = 4,   // an instruction or a list uses it
};

struct SavedValue {
  std::uint32_t index;
  EValue value;
};

struct Plan {
  std::span<EValue> values;
  std::span<std::uint8_t> flags;  // ValueFlags, one for each value
  std::span<const std::uint32_t> inputs;
  std::span<const std::uint32_t> outputs;
  std::span<void*> staging;  // one for each input: memory of its own for a tensor that is not planned
  std::span<Instruction> instructions;
  std::span<Delegate> delegates;
  std::span<SavedValue> moved;  // what stands in the targets of moves before an execution
};

}  // namespace wb
