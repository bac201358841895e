#include <pybind11/stl.h>

#include <algorithm>

#include "python/convert.h"
#include "python/errors.h"
#include "python/program.h"
#include "python/trace.h"

namespace py = pybind11;

namespace wb::python {
namespace {

constexpr std::uint64_t kSignalPollNs = 50'000'000;

// Gives the method back however the call ends.
class Guard {
 public:
  explicit Guard(Method& method) : method_(method) {
    if (method.acquire() != Error::Ok) {
      raise(Error::InvalidState, std::string("the method ") + method.name() +
                                     " is being executed; load it a second time to run both at once");
    }
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { method_.release(); }

 private:
  Method& method_;
};

// One argument of the caller. Conversion happens before anything of the method is touched.
struct Given {
  std::unique_ptr<BorrowedTensor> tensor;
  EValue value;
  std::string text;
};

Given take(const py::handle& object, const EValue& expected, std::size_t index) {
  Given given;
  if (object.is_none()) return given;
  if (py::isinstance<py::bool_>(object)) {
    given.value.set(object.cast<bool>());
  } else if (py::isinstance<py::int_>(object)) {
    if (expected.tag == Tag::Double) {
      given.value.set(object.cast<double>());
    } else {
      given.value.set(object.cast<std::int64_t>());
    }
  } else if (py::isinstance<py::float_>(object)) {
    given.value.set(object.cast<double>());
  } else if (py::isinstance<py::str>(object)) {
    given.text = object.cast<std::string>();
    given.value.tag = Tag::String;
  } else if (is_tensor_like(object)) {
    given.tensor = std::make_unique<BorrowedTensor>(object, index);
  } else {
    throw py::type_error("input " + std::to_string(index) + ": expected a tensor, a number, a string or None, found " +
                         std::string(py::str(py::type::handle_of(object).attr("__name__"))));
  }
  return given;
}

Error set(Method& method, std::uint32_t index, Given& given) {
  if (given.tensor != nullptr) return method.set_input(index, given.tensor->view());
  if (given.value.tag == Tag::String) {
    given.value.payload.string = {given.text.data(), static_cast<std::uint32_t>(given.text.size())};
  }
  return method.check_input(index, given.value);
}

// Asked by the executor without the interpreter's lock; lets Ctrl-C and the notebook's stop button through.
struct SignalPoll {
  std::uint64_t last = now_ns();
  bool raised = false;

  static bool interrupted(void* self) {
    auto& poll = *static_cast<SignalPoll*>(self);
    const std::uint64_t now = now_ns();
    if (now - poll.last < kSignalPollNs) return false;
    poll.last = now;
    const py::gil_scoped_acquire gil;
    poll.raised = PyErr_CheckSignals() != 0;
    return poll.raised;
  }
};

py::object output_of(const LoadedMethod& self, const EValue& value, bool copy, const py::object& owner) {
  switch (value.tag) {
    case Tag::None: return py::none();
    case Tag::Int: return py::int_(value.payload.as_int);
    case Tag::Double: return py::float_(value.payload.as_double);
    case Tag::Bool: return py::bool_(value.payload.as_bool);
    case Tag::String: return py::str(value.payload.string.data, value.payload.string.size);
    case Tag::Tensor: {
      const Tensor& tensor = value.tensor();
      if (tensor.data == nullptr && tensor.numel() != 0) {
        raise(Error::InvalidProgram, "an output was not written by any instruction");
      }
      return copy || !self.method->owns(tensor) ? copy_out(tensor) : lend_out(tensor, owner);
    }
    case Tag::IntList:
      return py::cast(
          std::vector<std::int64_t>(value.payload.int_list.get().begin(), value.payload.int_list.get().end()));
    case Tag::DoubleList: {
      const auto items = value.payload.double_list.get();
      return py::cast(std::vector<double>(items.begin(), items.end()));
    }
    case Tag::BoolList: {
      const auto items = value.payload.bool_list.get();
      return py::cast(std::vector<bool>(items.begin(), items.end()));
    }
    case Tag::TensorList:
    case Tag::OptionalTensorList: {
      py::list items;
      for (std::uint32_t i = 0; i < value.payload.tensor_list.size; ++i) {
        items.append(output_of(self, *value.payload.tensor_list.items[i], copy, owner));
      }
      return items;
    }
  }
  return py::none();
}

py::list execute(const py::object& owner, const py::sequence& inputs, TraceSession* trace, bool copy_outputs,
                 std::uint64_t max_instructions) {
  auto& self = owner.cast<LoadedMethod&>();
  Method& method = *self.method;
  const auto given_count = static_cast<std::uint32_t>(py::len(inputs));
  if (given_count != method.input_count()) {
    raise(Error::InvalidArgument, "method " + std::string(method.name()) + ": expected " +
                                      std::to_string(method.input_count()) + " inputs, found " +
                                      std::to_string(given_count));
  }
  std::vector<Given> given;
  given.reserve(given_count);
  for (std::uint32_t i = 0; i < given_count; ++i) given.push_back(take(inputs[i], method.input(i), i));
  const TraceSession::Recording recording(trace);
  if (!recording.ok()) raise(Error::InvalidState, "another execution records into this trace session");
  if (trace != nullptr) trace->keep(owner);

  const Guard guard(method);
  SignalPoll poll;
  ExecuteOptions options;
  options.trace = trace == nullptr ? nullptr : trace->sink();
  options.max_instructions = max_instructions;
  options.interrupted = &SignalPoll::interrupted;
  options.self = &poll;
  Error error = Error::Ok;
  {
    const py::gil_scoped_release release;
    for (std::uint32_t i = 0; i < given_count && error == Error::Ok; ++i) error = set(method, i, given[i]);
    if (error == Error::Ok) error = method.execute(options);
  }
  if (poll.raised) throw py::error_already_set();
  if (error != Error::Ok) raise(error, method.diagnostic());
  py::list outputs(method.output_count());
  for (std::uint32_t i = 0; i < method.output_count(); ++i) {
    outputs[i] = output_of(self, method.output(i), copy_outputs, owner);
  }
  return outputs;
}

std::shared_ptr<LoadedMethod> load_method(const std::shared_ptr<LoadedProgram>& program, const std::string& name,
                                          const std::vector<std::uint64_t>& arena_limits, std::uint64_t memory_limit,
                                          TraceSession* trace) {
  auto loaded = std::make_shared<LoadedMethod>();
  loaded->program = program;
  std::vector<const DataFile*> files;
  for (const auto& file : program->data_files) files.push_back(file->file.get());
  LoadOptions options;
  options.data_files = files;
  options.arena_limits = arena_limits;
  options.memory_limit = memory_limit;
  const TraceSession::Recording recording(trace);
  if (!recording.ok()) raise(Error::InvalidState, "another execution records into this trace session");
  options.trace = trace == nullptr ? nullptr : trace->sink();
  Diagnostic diagnostic;
  if (trace != nullptr) trace->keep(py::cast(loaded));
  auto method = [&] {
    const py::gil_scoped_release release;
    return Method::load(*program->program, name, options, diagnostic);
  }();
  if (!method.ok()) raise(method.error(), diagnostic);
  loaded->method = std::move(method.get());
  return loaded;
}

const char* kind_name(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::Kernel: return "kernel";
    case Step::Kind::Delegate: return "delegate";
    case Step::Kind::Move: return "move";
    case Step::Kind::JumpFalse: return "jump";
    case Step::Kind::Free: return "free";
  }
  return "";
}

}  // namespace

void bind_method(py::module_& module) {
  py::class_<LoadedMethod, std::shared_ptr<LoadedMethod>>(module, "Method")
      .def(py::init(&load_method), py::arg("program"), py::arg("name"),
           py::arg("arena_limits") = std::vector<std::uint64_t>(), py::arg("memory_limit") = 0,
           py::arg("trace") = nullptr)
      .def("execute", &execute, py::arg("inputs"), py::arg("trace") = nullptr, py::arg("copy_outputs") = true,
           py::arg("max_instructions") = 0, "Outputs: DLPack capsules, numbers, strings, None and lists of them.")
      .def("cancel", [](LoadedMethod& self) { self.method->cancel(); })
      .def(
          "attribute",
          [](const LoadedMethod& self, const std::string& name) {
            const Guard guard(*self.method);
            const Tensor* tensor = self.method->attribute(name);
            if (tensor == nullptr) raise(Error::NotFound, "the method has no attribute " + name);
            return copy_out(*tensor);
          },
          py::arg("name"), "A DLPack capsule with a copy of a mutable buffer of the model.")
      .def(
          "instructions",
          [](const LoadedMethod& self) {
            py::list steps;
            for (const Step& step : self.method->steps()) {
              steps.append(py::make_tuple(step.chain, step.instruction, kind_name(step.kind), step.name));
            }
            return steps;
          },
          "(chain, instruction, kind, name) of each instruction.")
      .def("stats", [](const LoadedMethod& self) {
        const MethodStats& stats = self.method->stats();
        py::dict found;
        found["load_ns"] = stats.load_ns;
        found["prepare_ns"] = stats.prepare_ns;
        found["arena_bytes"] = stats.arena_bytes;
        found["scratch_bytes"] = stats.scratch_bytes;
        found["method_bytes"] = stats.method_bytes;
        return found;
      });
}

}  // namespace wb::python
