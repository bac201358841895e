// The blob of a delegate of `CpuBackend` (schema/cpu.fbs), read into the engine's graph. Nothing in it is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/backend.h"
#include "engine/graph.h"
#include "generated/cpu_generated.h"

namespace wb::cpu {

namespace fb = ::workbench::cpu;

inline constexpr std::uint32_t kVersion = 1;

// False for a vector of 8-byte elements that a damaged offset puts between them: the verifier does not look.
template <typename Vector>
[[nodiscard]] bool is_placed(const Vector* vector) {
  return vector == nullptr || reinterpret_cast<std::uintptr_t>(vector->Data()) % 8 == 0;
}

struct Blob {
  engine::Graph graph;
  // Arguments of the delegate call, and which of them the inputs and outputs of the graph are, in their order. Numbers
  // (sizes that the source graph computes) have no value.
  std::uint32_t inputs = 0, outputs = 0;
  std::vector<std::uint32_t> arguments;
  // Constants that stand in the blob itself, so that it must stay.
  bool holds_data = false;
};

// Checks the blob and builds the graph; the data of its constants is that of the blob and of the named data.
[[nodiscard]] Result<Blob> read_blob(BackendInitContext& context, std::span<const std::byte> bytes);

// The quantization of a value whose type and sizes are read; scales and zero points are checked to be there.
Error read_quantization(const BackendInitContext& context, const fb::Value& from, std::uint32_t index,
                        engine::Value& to);

// One node, after its values. Operators, functions and modes are checked; that attributes fit the shapes is left to
// the compiler, which holds every front end to the rules of graph.h.
Error read_node(const BackendInitContext& context, const fb::Node& from, std::uint32_t index, engine::Node& to);

}  // namespace wb::cpu
