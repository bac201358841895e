// The trace of the native runtime as Python sees it.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/trace_buffer.h"

namespace wb::python {

// One receiver of events, usable for any number of executions, one after the other. Whoever executes a method into it
// calls keep(method) first: names in events point into the method, and are read when they are drained.
class TraceSession {
 public:
  explicit TraceSession(const TraceOptions& options) : buffer_(options) {}

  [[nodiscard]] TraceBuffer& buffer() { return buffer_; }
  [[nodiscard]] EventSink* sink() { return &buffer_; }

  void keep(const pybind11::object& owner);

  // New events as packed records of 48 bytes; names are indices into names().
  [[nodiscard]] pybind11::bytes drain();
  [[nodiscard]] pybind11::list names();
  [[nodiscard]] pybind11::list outputs();

 private:
  std::int32_t name_index(const char* name);

  TraceBuffer buffer_;
  std::mutex consumer_;  // the ring has one consumer: whichever thread holds this
  std::vector<pybind11::object> owners_;
  std::vector<std::string> names_;
  std::unordered_map<const char*, std::int32_t> by_address_;
  std::unordered_map<std::string, std::int32_t> by_text_;
};

void bind_trace(pybind11::module_& module);

}  // namespace wb::python
