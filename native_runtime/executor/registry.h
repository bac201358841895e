// All kernels and backends that a program can use: those of the build's tables, those of static registrations, and
// those of plug-in libraries. A name belongs to one source; a second one is refused with both named.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/kernel.h"
#include "core/plugin.h"

namespace wb {

struct KernelEntry {
  const Kernel* kernel = nullptr;
  const char* source = nullptr;  // "built in: avx2", a source file, or the path of a plug-in
};

struct BackendEntry {
  Backend* backend = nullptr;
  const char* source = nullptr;
};

class Registry {
 public:
  // The one of this process. Entries are never removed.
  static Registry& get();

  // RegistrationAlreadyRegistered when two static registrations share a name; the rest of them is usable.
  Error check(Diagnostic& diagnostic) const;

  [[nodiscard]] const Kernel* find_kernel(std::string_view name) const;
  [[nodiscard]] Backend* find_backend(std::string_view id) const;

  [[nodiscard]] std::vector<KernelEntry> kernels() const;  // sorted by name
  [[nodiscard]] std::vector<BackendEntry> backends() const;

  // Loads a shared library that exports `workbench_plugin`, and takes in all that it holds, or nothing. Loading a
  // library a second time does nothing. The library stays loaded as long as the process lives.
  Error load_plugin(const char* path, Diagnostic& diagnostic);

 private:
  Registry();

  Error check_plugin(const Plugin& plugin, const char* path, Diagnostic& diagnostic) const;
  Error add_kernels(std::span<const Kernel> kernels, const char* source, Diagnostic& diagnostic);
  Error add_backend(Backend* backend, const char* source, Diagnostic& diagnostic);
  [[nodiscard]] const KernelEntry* find_added(std::string_view name) const;

  mutable std::mutex mutex_;
  std::vector<KernelEntry> added_kernels_;
  std::vector<BackendEntry> backends_;
  std::vector<std::unique_ptr<std::string>> plugin_paths_;
  std::vector<const Plugin*> plugins_;
  Error static_error_ = Error::Ok;
  Diagnostic static_diagnostic_;
};

}  // namespace wb
