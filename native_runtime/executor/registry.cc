#include "executor/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "core/register.h"
#include "kernels/select.h"

namespace wb {
namespace {

constexpr const char* kBuiltIn = "the runtime";

}  // namespace

Registry& Registry::get() {
  static Registry instance;
  return instance;
}

Registry::Registry() {
  for (const Registration* entry = Registration::first(); entry != nullptr; entry = entry->next()) {
    const Error error = entry->backend() != nullptr
                            ? add_backend(entry->backend(), entry->source(), static_diagnostic_)
                            : add_kernels(entry->kernels(), entry->source(), static_diagnostic_);
    if (error != Error::Ok) static_error_ = error;
  }
}

Error Registry::check(Diagnostic& diagnostic) const {
  if (static_error_ != Error::Ok) diagnostic.add("%s", static_diagnostic_.text());
  return static_error_;
}

const KernelEntry* Registry::find_added(std::string_view name) const {
  for (const KernelEntry& entry : added_kernels_) {
    if (name == entry.kernel->name) return &entry;
  }
  return nullptr;
}

const Kernel* Registry::find_kernel(std::string_view name) const {
  if (const Kernel* kernel = kernels::find_kernel(name); kernel != nullptr) return kernel;
  const std::lock_guard lock(mutex_);
  const KernelEntry* entry = find_added(name);
  return entry == nullptr ? nullptr : entry->kernel;
}

Backend* Registry::find_backend(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  for (const BackendEntry& entry : backends_) {
    if (id == entry.backend->id()) return entry.backend;
  }
  return nullptr;
}

std::vector<KernelEntry> Registry::kernels() const {
  std::vector<KernelEntry> all;
  for (std::size_t i = 0; i < kernels::kernel_count(); ++i) all.push_back({kernels::kernel_at(i), kBuiltIn});
  {
    const std::lock_guard lock(mutex_);
    all.insert(all.end(), added_kernels_.begin(), added_kernels_.end());
  }
  std::sort(all.begin(), all.end(),
            [](const KernelEntry& a, const KernelEntry& b) { return std::strcmp(a.kernel->name, b.kernel->name) < 0; });
  return all;
}

std::vector<BackendEntry> Registry::backends() const {
  const std::lock_guard lock(mutex_);
  return backends_;
}

Error Registry::add_kernels(std::span<const Kernel> kernels, const char* source, Diagnostic& diagnostic) {
  for (const Kernel& kernel : kernels) {
    const KernelEntry* known = find_added(kernel.name);
    const bool built_in = kernels::find_kernel(kernel.name) != nullptr;
    if (known != nullptr || built_in) {
      diagnostic.add("the kernel %s of %s is registered already, by %s", kernel.name, source,
                     built_in ? kBuiltIn : known->source);
      return Error::RegistrationAlreadyRegistered;
    }
    added_kernels_.push_back({&kernel, source});
  }
  return Error::Ok;
}

Error Registry::add_backend(Backend* backend, const char* source, Diagnostic& diagnostic) {
  for (const BackendEntry& entry : backends_) {
    if (std::strcmp(entry.backend->id(), backend->id()) == 0) {
      diagnostic.add("the backend %s of %s is registered already, by %s", backend->id(), source, entry.source);
      return Error::RegistrationAlreadyRegistered;
    }
  }
  backends_.push_back({backend, source});
  return Error::Ok;
}

Error Registry::check_plugin(const Plugin& plugin, const char* path, Diagnostic& diagnostic) const {
  if (plugin.abi != kPluginAbi) {
    diagnostic.add("%s was built for version %u of the plug-in headers, this runtime has %u", path, plugin.abi,
                   kPluginAbi);
    return Error::NotSupported;
  }
  const bool kernels_missing = plugin.kernels == nullptr && plugin.kernel_count != 0;
  const bool backends_missing = plugin.backends == nullptr && plugin.backend_count != 0;
  if (kernels_missing || backends_missing) {
    diagnostic.add("%s: the plug-in counts kernels or backends but has none", path);
    return Error::InvalidArgument;
  }
  for (std::uint32_t i = 0; i < plugin.kernel_count; ++i) {
    const Kernel& kernel = plugin.kernels[i];
    if (kernel.name == nullptr || kernel.prepare == nullptr || kernel.execute == nullptr) {
      diagnostic.add("%s: kernel %u lacks its name or a function", path, i);
      return Error::InvalidArgument;
    }
    for (std::uint32_t j = 0; j < i; ++j) {
      if (std::strcmp(plugin.kernels[j].name, kernel.name) == 0) {
        diagnostic.add("%s: the kernel %s stands there twice", path, kernel.name);
        return Error::RegistrationAlreadyRegistered;
      }
    }
  }
  for (std::uint32_t i = 0; i < plugin.backend_count; ++i) {
    if (plugin.backends[i] == nullptr || plugin.backends[i]->id() == nullptr) {
      diagnostic.add("%s: backend %u is null or has no id", path, i);
      return Error::InvalidArgument;
    }
  }
  return Error::Ok;
}

Error Registry::load_plugin(const char* path, Diagnostic& diagnostic) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    diagnostic.add("can't load %s: %s", path, ::dlerror());
    return Error::AccessFailed;
  }
  const auto function = reinterpret_cast<WorkbenchPluginFunction>(::dlsym(library, "workbench_plugin"));
  const Plugin* plugin = function == nullptr ? nullptr : function();
  if (plugin == nullptr) {
    diagnostic.add("%s is no plug-in: it does not export the function workbench_plugin, or that gives null", path);
    ::dlclose(library);
    return Error::InvalidArgument;
  }
  const std::lock_guard lock(mutex_);
  if (std::find(plugins_.begin(), plugins_.end(), plugin) != plugins_.end()) return Error::Ok;
  Error error = check_plugin(*plugin, path, diagnostic);
  const std::size_t kernels_before = added_kernels_.size();
  const std::size_t backends_before = backends_.size();
  auto source = std::make_unique<std::string>(path);
  if (error == Error::Ok) error = add_kernels({plugin->kernels, plugin->kernel_count}, source->c_str(), diagnostic);
  for (std::uint32_t i = 0; i < plugin->backend_count && error == Error::Ok; ++i) {
    error = add_backend(plugin->backends[i], source->c_str(), diagnostic);
  }
  if (error != Error::Ok) {
    added_kernels_.resize(kernels_before);
    backends_.resize(backends_before);
    ::dlclose(library);
    return error;
  }
  plugin_paths_.push_back(std::move(source));
  plugins_.push_back(plugin);
  return Error::Ok;
}

}  // namespace wb
