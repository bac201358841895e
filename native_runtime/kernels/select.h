// The kernels of the best instruction set that this processor has.
#pragma once

#include <span>
#include <string_view>

#include "core/kernel.h"

namespace wb::kernels {

// Names of the instruction sets that are compiled in, best first.
[[nodiscard]] std::span<const char* const> compiled_isas();

// True if this processor (and operating system) can run the instruction set.
[[nodiscard]] bool isa_supported(std::string_view isa);

// The instruction set in use: the best supported one, or the one that the environment variable
// LOWERING_WORKBENCH_ISA names (ignored when it is not compiled in or not supported).
[[nodiscard]] const char* active_isa();

// The kernel of that name ("aten::add.out") for the active instruction set; null when there is none.
[[nodiscard]] const Kernel* find_kernel(std::string_view name);

// Number of kernels, and the i-th in order of names; for listings.
[[nodiscard]] std::size_t kernel_count();
[[nodiscard]] const Kernel* kernel_at(std::size_t index);

}  // namespace wb::kernels
