// Programs and methods as Python sees them.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/method.h"
#include "program/data_file.h"
#include "program/program.h"

namespace wb::python {

// Bytes that Python owns, held for as long as something refers to them. Memory that somebody may still write to is
// copied: what was checked must not change afterwards.
class HeldBytes {
 public:
  HeldBytes() = default;
  explicit HeldBytes(const pybind11::handle& object);
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  pybind11::object owner_;
  std::unique_ptr<pybind11::buffer_info> info_;
  std::span<const std::byte> bytes_;
};

struct LoadedDataFile {
  HeldBytes held;
  std::unique_ptr<DataFile> file;
};

struct LoadedProgram {
  HeldBytes held;
  std::unique_ptr<Program> program;
  std::vector<std::shared_ptr<LoadedDataFile>> data_files;
};

struct LoadedMethod {
  std::shared_ptr<LoadedProgram> program;  // the method points into it
  std::unique_ptr<Method> method;
};

void bind_program(pybind11::module_& module);
void bind_method(pybind11::module_& module);

}  // namespace wb::python
