// The one place where an error of the runtime becomes a Python exception.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "core/error.h"

namespace wb::python {

// Raises workbench.errors.ExecutionError(message, code=...). Names in a damaged program may not be UTF-8.
[[noreturn]] inline void raise(Error error, const std::string& message) {
  namespace py = pybind11;
  const py::object kind = py::module_::import("workbench.errors").attr("ExecutionError");
  const std::string text = message.empty() ? "the runtime failed" : message;
  const auto decoded = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  const py::object exception = kind(decoded, py::arg("code") = name_of(error));
  PyErr_SetObject(kind.ptr(), exception.ptr());
  throw py::error_already_set();
}

[[noreturn]] inline void raise(Error error, const Diagnostic& diagnostic) {
  raise(error, std::string(diagnostic.text()));
}

}  // namespace wb::python
