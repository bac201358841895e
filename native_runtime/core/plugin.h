// The one header for code that lives outside this project. A shared library exports `workbench_plugin` and is loaded
// with Runtime.load_plugin(path); it links against nothing. Compile with the same C++ standard (C++20).
#pragma once

#include <cstdint>

#include "backend.h"
#include "kernel.h"

namespace wb {

// Raised whenever a type of these headers changes its layout.
inline constexpr std::uint32_t kPluginAbi = 1;

struct Plugin {
  std::uint32_t abi = kPluginAbi;
  const char* name = nullptr;
  const Kernel* kernels = nullptr;
  std::uint32_t kernel_count = 0;
  Backend* const* backends = nullptr;
  std::uint32_t backend_count = 0;
};

}  // namespace wb

#define WB_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))

// WB_PLUGIN_EXPORT const wb::Plugin* workbench_plugin();
using WorkbenchPluginFunction = const wb::Plugin* (*)();
