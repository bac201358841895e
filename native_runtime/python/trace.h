// The trace of the native runtime as Python sees it.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
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

  // One execution at a time may record. Holds the session for as long as it lives, if ok().
  class Recording {
   public:
    explicit Recording(TraceSession* session) : session_(session) {
      held_ = session != nullptr && !session->recording_.exchange(true, std::memory_order_acquire);
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    ~Recording() {
      if (held_) session_->recording_.store(false, std::memory_order_release);
    }
    // False if another execution records into the session. True without a session.
    [[nodiscard]] bool ok() const { return session_ == nullptr || held_; }

   private:
    TraceSession* session_;
    bool held_ = false;
  };
  [[nodiscard]] bool recording() const { return recording_.load(std::memory_order_acquire); }

  // New events as packed records of 48 bytes; names are indices into names().
  [[nodiscard]] pybind11::bytes drain();
  [[nodiscard]] pybind11::list names();
  [[nodiscard]] pybind11::list outputs();

 private:
  std::int32_t name_index(const char* name);

  TraceBuffer buffer_;
  std::atomic<bool> recording_{false};
  std::mutex consumer_;  // the ring has one consumer: whichever thread holds this
  std::vector<pybind11::object> owners_;
  std::vector<std::string> names_;
  std::unordered_map<const char*, std::int32_t> by_address_;
  std::unordered_map<std::string, std::int32_t> by_text_;
};

void bind_trace(pybind11::module_& module);

}  // namespace wb::python
