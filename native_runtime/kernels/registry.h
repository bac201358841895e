// Every file below kernels/<family>/ is compiled once per instruction set, with WB_ISA set to its name. Code of a file
// stands in `namespace wb::kernels::WB_ISA`, so that no two variants share a symbol, and ends with its rows:
//
//   WB_KERNELS(binary_add, {"aten::add.out", add_prepare, add_execute}, ...)
//
// The first argument is "<family>_<file>": the build makes the list of tables from the file names, so adding a kernel
// touches one file. A C++ standard-library function with external linkage (std::sort, std::function) would be shared
// between the variants; the build hides all symbols of a variant but its table to keep them apart.
#pragma once

#include <cstdint>
#include <span>

#include "core/kernel.h"

#ifndef WB_ISA
#error "compile kernels through kernels/CMakeLists.txt, which sets WB_ISA"
#endif

namespace wb::kernels {

struct KernelTable {
  const Kernel* rows;
  std::uint32_t count;
};

}  // namespace wb::kernels

#define WB_KERNELS(stem, ...)                                                                                \
  namespace wb::kernels::WB_ISA {                                                                            \
  extern const ::wb::kernels::KernelTable table_##stem;                                                      \
  namespace {                                                                                                \
  constexpr ::wb::Kernel rows_##stem[] = {__VA_ARGS__};                                                      \
  }                                                                                                          \
  const ::wb::kernels::KernelTable table_##stem = {rows_##stem, sizeof(rows_##stem) / sizeof(::wb::Kernel)}; \
  }
