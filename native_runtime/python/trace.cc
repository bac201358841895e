#include "trace.h"

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <stdexcept>

namespace py = pybind11;

namespace wb::python {
namespace {

// The layout of one drained event; `EVENT_DTYPE` of workbench/inspector/trace.py is the same.
struct PackedEvent {
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::int32_t name;
  std::int32_t delegate_name;
  std::int32_t chain;
  std::int32_t instruction;
  std::int32_t delegate_id;
  std::uint32_t execution;
  std::uint8_t kind;
  std::uint8_t padding[7];
};
static_assert(sizeof(PackedEvent) == 48);

// Where tensors are asked for and no room is named. The system backs pages when they are written first.
constexpr std::size_t kDebugBufferBytes = std::size_t{1} << 30;
constexpr std::size_t kOutputRecords = std::size_t{1} << 16;

py::tuple sizes_of(const OutputRecord& record) {
  py::tuple sizes(record.rank);
  for (std::size_t d = 0; d < record.rank; ++d) sizes[d] = py::int_(record.sizes[d]);
  return sizes;
}

py::tuple dim_order_of(const OutputRecord& record) {
  py::tuple order(record.rank);
  for (std::size_t d = 0; d < record.rank; ++d) order[d] = py::int_(static_cast<int>(record.dim_order[d]));
  return order;
}

void refuse_while_recording(const TraceSession& session) {
  if (session.recording()) throw std::runtime_error("a method is running into this trace session");
}

}  // namespace

void TraceSession::keep(const py::object& owner) {
  for (const py::object& known : owners_) {
    if (known.is(owner)) return;
  }
  owners_.push_back(owner);
}

std::int32_t TraceSession::name_index(const char* name) {
  if (name == nullptr) return -1;
  if (const auto known = by_address_.find(name); known != by_address_.end()) return known->second;
  const auto [entry, added] = by_text_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
  if (added) names_.emplace_back(name);
  by_address_.emplace(name, entry->second);
  return entry->second;
}

py::bytes TraceSession::drain() {
  const std::lock_guard lock(consumer_);
  std::string packed;
  packed.reserve(buffer_.pending() * sizeof(PackedEvent));
  buffer_.drain([&](const TraceRecord& record) {
    const Event& event = record.event;
    const PackedEvent out{.start_ns = event.start_ns,
                          .end_ns = event.end_ns,
                          .name = name_index(event.name),
                          .delegate_name = name_index(event.delegate_debug_name),
                          .chain = event.chain,
                          .instruction = event.instruction,
                          .delegate_id = event.delegate_debug_id,
                          .execution = record.execution,
                          .kind = static_cast<std::uint8_t>(event.kind),
                          .padding = {}};
    packed.append(reinterpret_cast<const char*>(&out), sizeof out);
  });
  return py::bytes(packed);
}

py::list TraceSession::names() {
  const std::lock_guard lock(consumer_);
  py::list names;
  for (const std::string& name : names_) names.append(name);
  return names;
}

py::list TraceSession::outputs() {
  const std::lock_guard lock(consumer_);
  py::list outputs;
  for (const OutputRecord& record : buffer_.outputs()) {
    py::dict entry;
    entry["chain"] = record.event.chain;
    entry["instruction"] = record.event.instruction;
    entry["name"] = record.event.name == nullptr ? "" : record.event.name;
    entry["delegate_id"] = record.event.delegate_debug_id;
    entry["delegate_name"] = record.event.delegate_debug_name == nullptr ? "" : record.event.delegate_debug_name;
    entry["execution"] = record.execution;
    entry["index"] = record.index;
    entry["dtype"] = static_cast<int>(record.dtype);
    entry["sizes"] = sizes_of(record);
    entry["dim_order"] = dim_order_of(record);
    entry["offset"] = record.offset;
    entry["nbytes"] = record.nbytes;
    outputs.append(entry);
  }
  return outputs;
}

void bind_trace(py::module_& module) {
  py::class_<TraceSession>(module, "TraceSession",
                           "Receives the events of executions, and copies of intermediate tensors if asked for.\n\n"
                           "Give it to `Method.execute(inputs, trace=session)`. `drain()` may be called from another "
                           "thread while the method runs.")
      .def(py::init([](std::size_t events, bool outputs, std::uint32_t output_executions,
                       std::optional<std::size_t> debug_buffer_bytes, std::optional<std::size_t> output_records) {
             const auto bytes = debug_buffer_bytes.value_or(outputs ? kDebugBufferBytes : 0);
             const auto records = output_records.value_or(outputs ? kOutputRecords : 0);
             auto session = std::make_unique<TraceSession>(TraceOptions{.events = events,
                                                                        .outputs = outputs,
                                                                        .output_executions = output_executions,
                                                                        .debug_buffer_bytes = bytes,
                                                                        .output_records = records});
             if (!session->buffer().valid()) {
               PyErr_SetString(PyExc_MemoryError, "no memory for the trace's ring or debug buffer");
               throw py::error_already_set();
             }
             return session;
           }),
           py::kw_only(), py::arg("events") = std::size_t{1} << 16, py::arg("outputs") = false,
           py::arg("output_executions") = 1, py::arg("debug_buffer_bytes") = py::none(),
           py::arg("output_records") = py::none(),
           "Args:\n"
           "    events: Room for events that have not been drained yet.\n"
           "    outputs: Record what each instruction writes.\n"
           "    output_executions: Of how many executions, from the first on; 0 for all.\n"
           "    debug_buffer_bytes: Room for those tensors; by default 1 GiB of addresses, of which only what is "
           "written takes memory.\n"
           "    output_records: Room for their descriptions; by default 65,536.")
      .def("keep", &TraceSession::keep, py::arg("owner"), "Keep the object alive whose names the events point to.")
      .def("drain", &TraceSession::drain, "New events, as packed records of 48 bytes (see `EVENT_DTYPE`).")
      .def("outputs", &TraceSession::outputs, "What is known of each captured tensor, in the order of execution.")
      .def(
          "debug_buffer",
          [](TraceSession& self) {
            const auto bytes = self.buffer().debug_buffer();
            return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          },
          "A copy of the captured tensors' bytes; `offset` of an output counts from its start.")
      .def(
          "reserve_outputs",
          [](TraceSession& self, std::size_t bytes, std::size_t records) {
            refuse_while_recording(self);
            if (self.buffer().reserve_outputs(bytes, records) != Error::Ok) {
              PyErr_SetString(PyExc_MemoryError, "no memory for the debug buffer");
              throw py::error_already_set();
            }
          },
          py::arg("bytes"), py::arg("records"),
          "Make room for captured tensors and forget those that stand there. Not while a method runs.")
      .def(
          "clear_outputs",
          [](TraceSession& self) {
            refuse_while_recording(self);
            self.buffer().clear_outputs();
          },
          "Forget the captured tensors, and capture those of the next execution. Not while a method runs.")
      .def_property_readonly("recording", &TraceSession::recording)
      .def_property_readonly("names", &TraceSession::names, "Text of each name index that `drain()` gave so far.")
      .def_property_readonly("wants_outputs", [](TraceSession& self) { return self.buffer().wants_outputs(); })
      .def_property_readonly("capacity", [](TraceSession& self) { return self.buffer().capacity(); })
      .def_property_readonly(
          "dropped", [](TraceSession& self) { return self.buffer().dropped(); },
          "Events that were lost because the ring was full.")
      .def_property_readonly("executions", [](TraceSession& self) { return self.buffer().executions(); })
      .def_property_readonly("outputs_dropped", [](TraceSession& self) { return self.buffer().outputs_dropped(); })
      .def_property_readonly("bytes_wanted", [](TraceSession& self) { return self.buffer().bytes_wanted(); })
      .def_property_readonly("records_wanted", [](TraceSession& self) { return self.buffer().records_wanted(); });
  module.def("now_ns", &now_ns, "The clock of the events: nanoseconds of CLOCK_MONOTONIC.");
}

}  // namespace wb::python
