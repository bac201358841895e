#include "python/program.h"

#include <pybind11/stl.h>

#include "python/errors.h"
#include "python/trace.h"

namespace py = pybind11;

namespace wb::python {
namespace {

struct TensorInfo {
  py::tuple sizes;
  py::tuple dim_order;
  int dtype = 0;
  int dynamism = 0;
  bool planned = false;
  std::size_t nbytes = 0;
  std::string name;
};

TensorInfo describe(const fb::Tensor& record) {
  const std::uint32_t rank = count(record.sizes());
  TensorInfo info{.sizes = py::tuple(rank), .dim_order = py::tuple(rank), .name = {}};
  info.nbytes = element_size(static_cast<ScalarType>(record.scalar_type()));
  for (std::uint32_t d = 0; d < rank; ++d) {
    info.sizes[d] = py::int_(record.sizes()->Get(d));
    info.dim_order[d] = py::int_(static_cast<int>(record.dim_order()->Get(d)));
    info.nbytes *= static_cast<std::size_t>(record.sizes()->Get(d));
  }
  info.dtype = static_cast<int>(record.scalar_type());
  info.dynamism = static_cast<int>(record.shape_dynamism());
  info.planned = record.allocation_info() != nullptr || record.data_buffer_idx() != 0;
  if (record.extra_tensor_info() != nullptr) {
    info.name = std::string(view(record.extra_tensor_info()->fully_qualified_name()));
  }
  return info;
}

// A record of a program with the program that it stands in.
struct MethodMeta {
  std::shared_ptr<LoadedProgram> program;
  const fb::ExecutionPlan* plan = nullptr;

  [[nodiscard]] const fb::EValue& value(const flatbuffers::Vector<std::int32_t>* indices, std::size_t index,
                                        const char* what) const {
    if (index >= count(indices)) {
      throw py::index_error(std::string(what) + " " + std::to_string(index) + " of " + std::to_string(count(indices)));
    }
    return *plan->values()->Get(static_cast<std::uint32_t>(indices->Get(static_cast<std::uint32_t>(index))));
  }

  [[nodiscard]] TensorInfo tensor(const flatbuffers::Vector<std::int32_t>* indices, std::size_t index,
                                  const char* what) const {
    const fb::EValue& found = value(indices, index, what);
    if (found.val_type() != fb::KernelTypes::Tensor) {
      raise(Error::InvalidArgument, std::string(what) + " " + std::to_string(index) + " is no tensor but " +
                                        fb::EnumNameKernelTypes(found.val_type()));
    }
    return describe(*found.val_as_Tensor());
  }

  // Tensors with a name and memory of their own: the mutable buffers of the model.
  [[nodiscard]] std::vector<TensorInfo> attributes() const {
    std::vector<TensorInfo> found;
    for (std::uint32_t i = 0; i < count(plan->values()); ++i) {
      const auto* tensor = plan->values()->Get(i)->val_as_Tensor();
      if (tensor == nullptr || tensor->allocation_info() == nullptr || tensor->extra_tensor_info() == nullptr) continue;
      if (!view(tensor->extra_tensor_info()->fully_qualified_name()).empty()) found.push_back(describe(*tensor));
    }
    return found;
  }
};

std::shared_ptr<LoadedDataFile> load_data_file(const py::object& source) {
  auto loaded = std::make_shared<LoadedDataFile>();
  Diagnostic diagnostic;
  const bool is_path = py::isinstance<py::str>(source);
  if (!is_path) loaded->held = HeldBytes(source);
  auto file = is_path ? DataFile::open(source.cast<std::string>().c_str(), diagnostic)
                      : DataFile::from_bytes(loaded->held.bytes(), diagnostic);
  if (!file.ok()) raise(file.error(), diagnostic);
  loaded->file = std::move(file.get());
  return loaded;
}

std::shared_ptr<LoadedProgram> load_program(const py::object& source,
                                            std::vector<std::shared_ptr<LoadedDataFile>> data_files,
                                            TraceSession* trace) {
  auto loaded = std::make_shared<LoadedProgram>();
  const std::uint64_t start = now_ns();
  loaded->data_files = std::move(data_files);
  Diagnostic diagnostic;
  const bool is_path = py::isinstance<py::str>(source);
  if (!is_path) loaded->held = HeldBytes(source);
  const std::string path = is_path ? source.cast<std::string>() : std::string();
  auto program = [&] {
    const py::gil_scoped_release release;
    return is_path ? Program::open(path.c_str(), diagnostic) : Program::from_bytes(loaded->held.bytes(), diagnostic);
  }();
  if (!program.ok()) raise(program.error(), diagnostic);
  loaded->program = std::move(program.get());
  if (trace != nullptr) {
    trace->sink()->record({.start_ns = start, .end_ns = now_ns(), .name = "Program::load", .kind = EventKind::Load});
  }
  return loaded;
}

MethodMeta meta_of(const std::shared_ptr<LoadedProgram>& program, const std::string& name) {
  const fb::ExecutionPlan* plan = program->program->method(name);
  if (plan == nullptr) raise(Error::NotFound, "the program has no method " + name);
  return {program, plan};
}

void bind_meta(py::module_& module) {
  py::class_<TensorInfo>(module, "TensorInfo", "What a program says about a tensor that goes in or comes out.")
      .def(
          "sizes", [](const TensorInfo& self) { return self.sizes; }, "Sizes; upper bounds of those that change.")
      .def(
          "dtype", [](const TensorInfo& self) { return self.dtype; }, "The element type's number (c10::ScalarType).")
      .def(
          "dim_order", [](const TensorInfo& self) { return self.dim_order; }, "Dimensions from outermost to innermost.")
      .def(
          "is_memory_planned", [](const TensorInfo& self) { return self.planned; },
          "True when it has memory in the method's arenas: what goes in is copied there.")
      .def(
          "is_dynamic", [](const TensorInfo& self) { return self.dynamism != 0; }, "True when its sizes may change.")
      .def(
          "nbytes", [](const TensorInfo& self) { return self.nbytes; }, "Bytes at the upper bound of the sizes.")
      .def(
          "name", [](const TensorInfo& self) { return self.name; }, "Its name in the model, or an empty string.")
      .def("__repr__", [](const TensorInfo& self) {
        return "TensorInfo(sizes=" + py::repr(self.sizes).cast<std::string>() +
               ", dtype=" + name_of(static_cast<ScalarType>(self.dtype)) +
               ", is_memory_planned=" + (self.planned ? "True" : "False") + ", nbytes=" + std::to_string(self.nbytes) +
               ")";
      });
  py::class_<MethodMeta>(module, "MethodMeta", "What a program says about a method; known without loading it.")
      .def("name", [](const MethodMeta& self) { return std::string(view(self.plan->name())); })
      .def("num_inputs", [](const MethodMeta& self) { return count(self.plan->inputs()); })
      .def("num_outputs", [](const MethodMeta& self) { return count(self.plan->outputs()); })
      .def("num_attributes", [](const MethodMeta& self) { return self.attributes().size(); })
      .def("num_instructions",
           [](const MethodMeta& self) {
             std::size_t total = 0;
             for (std::uint32_t c = 0; c < count(self.plan->chains()); ++c) {
               total += count(self.plan->chains()->Get(c)->instructions());
             }
             return total;
           })
      .def(
          "input_tag",
          [](const MethodMeta& self, std::size_t index) {
            return fb::EnumNameKernelTypes(self.value(self.plan->inputs(), index, "input").val_type());
          },
          py::arg("index"), "\"Tensor\", \"Int\", ...")
      .def(
          "output_tag",
          [](const MethodMeta& self, std::size_t index) {
            return fb::EnumNameKernelTypes(self.value(self.plan->outputs(), index, "output").val_type());
          },
          py::arg("index"))
      .def(
          "input_tensor_meta",
          [](const MethodMeta& self, std::size_t index) { return self.tensor(self.plan->inputs(), index, "input"); },
          py::arg("index"), "Raises IndexError for an index out of range.")
      .def(
          "output_tensor_meta",
          [](const MethodMeta& self, std::size_t index) { return self.tensor(self.plan->outputs(), index, "output"); },
          py::arg("index"), "Raises IndexError for an index out of range.")
      .def(
          "attribute_tensor_meta",
          [](const MethodMeta& self, std::size_t index) {
            std::vector<TensorInfo> found = self.attributes();
            if (index >= found.size()) throw py::index_error("attribute " + std::to_string(index));
            return found[index];
          },
          py::arg("index"), "Raises IndexError for an index out of range.")
      .def(
          "arena_bytes",
          [](const MethodMeta& self) {
            std::vector<std::int64_t> sizes;
            const auto* buffers = self.plan->non_const_buffer_sizes();
            for (std::uint32_t i = 1; i < count(buffers); ++i) sizes.push_back(buffers->Get(i));
            return sizes;
          },
          "Bytes of each arena of planned memory.")
      .def(
          "operators",
          [](const MethodMeta& self) {
            std::vector<std::string> names;
            for (std::uint32_t i = 0; i < count(self.plan->operators()); ++i) {
              const fb::Operator& op = *self.plan->operators()->Get(i);
              const std::string_view overload = view(op.overload());
              names.push_back(std::string(view(op.name())) + (overload.empty() ? "" : ".") + std::string(overload));
            }
            return names;
          },
          "Names of the kernels that it calls.")
      .def(
          "backends",
          [](const MethodMeta& self) {
            std::vector<std::string> ids;
            for (std::uint32_t i = 0; i < count(self.plan->delegates()); ++i) {
              ids.emplace_back(view(self.plan->delegates()->Get(i)->id()));
            }
            return ids;
          },
          "The backend of each delegate.")
      .def("__repr__", [](const MethodMeta& self) {
        return "MethodMeta(name=" + std::string(view(self.plan->name())) +
               ", num_inputs=" + std::to_string(count(self.plan->inputs())) +
               ", num_outputs=" + std::to_string(count(self.plan->outputs())) + ")";
      });
}

}  // namespace

HeldBytes::HeldBytes(const py::handle& object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    throw py::type_error("expected bytes or another buffer, found " +
                         std::string(py::str(py::type::handle_of(object).attr("__name__"))));
  }
  owner_ = py::reinterpret_borrow<py::object>(object);
  if (!py::isinstance<py::bytes>(owner_)) {
    // A read-only view may still belong to memory that others write to; only `bytes` never change.
    const auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(object.ptr()));
    if (!view) throw py::error_already_set();
    if (!view.attr("readonly").cast<bool>() || !py::isinstance<py::bytes>(view.attr("obj"))) {
      owner_ = py::reinterpret_steal<py::object>(PyBytes_FromObject(view.ptr()));
      if (!owner_) throw py::error_already_set();
    }
  }
  info_ = std::make_unique<py::buffer_info>(py::reinterpret_borrow<py::buffer>(owner_).request());
  if (PyBuffer_IsContiguous(info_->view(), 'C') == 0) {
    owner_ = py::reinterpret_steal<py::object>(PyBytes_FromObject(owner_.ptr()));
    info_ = std::make_unique<py::buffer_info>(py::reinterpret_borrow<py::buffer>(owner_).request());
  }
  bytes_ = {static_cast<const std::byte*>(info_->ptr), static_cast<std::size_t>(info_->size * info_->itemsize)};
}

void bind_program(py::module_& module) {
  bind_meta(module);
  py::class_<LoadedDataFile, std::shared_ptr<LoadedDataFile>>(module, "DataFile", "Named tensors outside a program.")
      .def(py::init(&load_data_file), py::arg("source"))
      .def("keys",
           [](const LoadedDataFile& self) {
             std::vector<std::string> keys;
             for (std::size_t i = 0; i < self.file->count(); ++i) keys.emplace_back(self.file->key(i));
             return keys;
           })
      .def(
          "get",
          [](const LoadedDataFile& self, const std::string& key) {
            auto data = self.file->get(key);
            if (!data.ok()) raise(data.error(), "no data of the name " + key);
            return py::bytes(reinterpret_cast<const char*>((*data).data()), (*data).size());
          },
          py::arg("key"), "A copy of the bytes.");
  py::class_<LoadedProgram, std::shared_ptr<LoadedProgram>>(module, "Program")
      .def(py::init(&load_program), py::arg("source"), py::arg("data_files"), py::arg("trace") = nullptr,
           "A program from a path (str; mapped) or from bytes (used in place).")
      .def("method_names",
           [](const LoadedProgram& self) {
             std::vector<std::string> names;
             for (std::size_t i = 0; i < self.program->method_count(); ++i) {
               names.emplace_back(view(self.program->method_at(i).name()));
             }
             return names;
           })
      .def("method_meta", &meta_of, py::arg("name"))
      .def("named_data",
           [](const LoadedProgram& self) {
             std::vector<std::string> keys;
             for (std::size_t i = 0; i < self.program->named_count(); ++i) {
               keys.emplace_back(self.program->named_key(i));
             }
             return keys;
           })
      .def_property_readonly("nbytes", [](const LoadedProgram& self) { return self.program->source().bytes().size(); });
}

}  // namespace wb::python
