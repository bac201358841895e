// The Python module workbench_widgets._layout: conversion only; workbench_widgets/layout.py is its typed face.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>

#include "layout.h"

namespace py = pybind11;

namespace {

template <typename T>
using Column = py::array_t<T, py::array::c_style>;

template <typename T>
std::span<const T> view(const Column<T>& column) {
  return {column.data(), static_cast<size_t>(column.size())};
}

template <typename T>
Column<T> copy(const std::vector<T>& values) {
  return Column<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::tuple run(const Column<float>& width, const Column<float>& height, const Column<int32_t>& src,
              const Column<int32_t>& dst, const Column<int32_t>& weight, const Column<float>& anchor_x,
              const Column<float>& anchor_y, float gap_x, float gap_y, float margin, int32_t sweeps, int32_t max_span) {
  const wb::layout::Input input{view(width),  view(height),   view(src),      view(dst),
                                view(weight), view(anchor_x), view(anchor_y), {gap_x, gap_y, margin, sweeps, max_span}};
  wb::layout::Output output;
  wb::layout::Status status;
  {
    const py::gil_scoped_release released;
    status = wb::layout::layout(input, output);
  }
  if (!status) {
    std::string message = wb::layout::describe(status.fault);
    if (status.index >= 0) message += " (at index " + std::to_string(status.index) + ")";
    throw py::value_error(message);
  }
  return py::make_tuple(copy(output.x), copy(output.y), output.width, output.height, copy(output.edge_start),
                        copy(output.points));
}

}  // namespace

PYBIND11_MODULE(_layout, module) {
  module.doc() = "Layered graph layout; see workbench_widgets.layout";
  module.def("layout", &run);
}
