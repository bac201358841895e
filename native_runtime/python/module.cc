// The Python module: conversion only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "engine/pool.h"
#include "executor/registry.h"
#include "kernels/select.h"
#include "python/errors.h"
#include "python/program.h"
#include "python/trace.h"

namespace py = pybind11;

namespace wb::python {
namespace {

py::list kernels() {
  py::list names;
  for (const KernelEntry& entry : Registry::get().kernels()) {
    names.append(py::make_tuple(entry.kernel->name, entry.source));
  }
  return names;
}

py::list backends() {
  py::list found;
  for (const BackendEntry& entry : Registry::get().backends()) {
    found.append(py::make_tuple(entry.backend->id(), entry.backend->is_available(), entry.source));
  }
  return found;
}

void load_plugin(const std::string& path) {
  Diagnostic diagnostic;
  if (const Error error = Registry::get().load_plugin(path.c_str(), diagnostic); error != Error::Ok) {
    raise(error, diagnostic);
  }
}

std::vector<std::string> compiled_isas() {
  std::vector<std::string> names;
  for (const char* name : kernels::compiled_isas()) names.emplace_back(name);
  return names;
}

}  // namespace
}  // namespace wb::python

PYBIND11_MODULE(_native, module) {
  using namespace wb::python;
  module.doc() = "The native runtime. Use it through workbench.runtime.";
  bind_trace(module);
  bind_program(module);
  bind_method(module);
  module.def("kernels", &kernels, "(name, source) of each kernel, sorted by name.");
  module.def("backends", &backends, "(id, available, source) of each backend.");
  module.def("load_plugin", &load_plugin, py::arg("path"));
  module.def("threads", [] { return wb::engine::Pool::instance().threads(); });
  module.def("set_threads", [](int count) { wb::engine::Pool::instance().set_threads(count); }, py::arg("count"));
  module.def("active_isa", &wb::kernels::active_isa);
  module.def("compiled_isas", &compiled_isas);
  module.def("isa_supported", [](const std::string& isa) { return wb::kernels::isa_supported(isa); }, py::arg("isa"));
}
