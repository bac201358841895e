// Backends: how a delegated part of a program runs. A backend is looked up by the identifier that stands in the
// program; `init` builds a handle from the blob once, while the method is loaded, `execute` runs it.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "error.h"
#include "evalue.h"
#include "host.h"
#include "trace.h"

namespace wb {

struct CompileSpecRef {
  std::string_view key;
  std::span<const std::byte> value;
};

// Data stored by name in the program or in a `.ptd` file.
class NamedData {
 public:
  // The bytes live as long as the program. Error::NotFound when there is no such key.
  [[nodiscard]] virtual Result<std::span<const std::byte>> get(std::string_view key) const = 0;
  // Tells that a part of what get() or init() gave is not needed soon: its pages go back to the system. It stays
  // readable.
  virtual void release(std::span<const std::byte> part) const { (void)part; }

 protected:
  ~NamedData() = default;
};

struct BackendInitContext {
  const Host* host = nullptr;
  const NamedData* named_data = nullptr;  // never null
  std::string_view method_name;
  // The arguments of the call that runs the delegate, sizes at their upper bounds, without data; empty when no
  // instruction calls it.
  std::span<EValue* const> arguments{};
  // Set to true by init when the blob is not needed any more: the runtime may give its pages back.
  bool release_processed = false;

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 64) const {
    return host->allocate(host->self, bytes, alignment);
  }
  __attribute__((format(printf, 3, 4))) Error fail(Error error, const char* format, ...) const {
    std::va_list list;
    va_start(list, format);
    host->vreport(host->self, format, list);
    va_end(list);
    return error;
  }
};

struct BackendExecuteContext {
  const Host* host = nullptr;
  EventSink* trace = nullptr;  // null: off
  std::int32_t chain = 0;
  std::int32_t instruction = 0;  // of the delegate call

  Error resize(Tensor& out, std::span<const std::int32_t> sizes) const {
    return host->resize(host->self, out, sizes.data(), static_cast<int>(sizes.size()));
  }
  // Tells that something with this debug identifier (made ahead of time by the backend) ran inside the delegate.
  void log(const char* name, std::int32_t debug_id, std::uint64_t start_ns, std::uint64_t end_ns) const {
    if (trace == nullptr) return;
    trace->record({.start_ns = start_ns,
                   .end_ns = end_ns,
                   .name = name,
                   .chain = chain,
                   .instruction = instruction,
                   .delegate_debug_id = debug_id,
                   .kind = EventKind::Delegate});
  }
  // The same for backends whose identifiers are texts; `debug_id` lives as long as the method.
  void log(const char* name, const char* debug_id, std::uint64_t start_ns, std::uint64_t end_ns) const {
    if (trace == nullptr) return;
    trace->record({.start_ns = start_ns,
                   .end_ns = end_ns,
                   .name = name,
                   .chain = chain,
                   .instruction = instruction,
                   .kind = EventKind::Delegate,
                   .delegate_debug_name = debug_id});
  }
  // True if log_output() has a receiver.
  [[nodiscard]] bool wants_outputs() const { return trace != nullptr && trace->wants_outputs(); }
  // Hands over a copy of what this identifier stands for: output `index` of it. `data`, `sizes`, `dim_order`, `rank`
  // and `dtype` of the tensor are read.
  void log_output(std::int32_t debug_id, int index, const Tensor& tensor) const {
    if (trace == nullptr) return;
    trace->output(
        {.chain = chain, .instruction = instruction, .delegate_debug_id = debug_id, .kind = EventKind::Output}, index,
        tensor);
  }
  __attribute__((format(printf, 3, 4))) Error fail(Error error, const char* format, ...) const {
    std::va_list list;
    va_start(list, format);
    host->vreport(host->self, format, list);
    va_end(list);
    return error;
  }
  // The same for backends whose identifiers are texts.
  void log_output(const char* debug_id, int index, const Tensor& tensor) const {
    if (trace == nullptr) return;
    trace->output(
        {.chain = chain, .instruction = instruction, .kind = EventKind::Output, .delegate_debug_name = debug_id}, index,
        tensor);
  }
};

// What a backend keeps per delegate; opaque to the runtime.
using DelegateHandle = void;

class Backend {
 public:
  [[nodiscard]] virtual const char* id() const = 0;
  [[nodiscard]] virtual bool is_available() const { return true; }
  // `processed` is the blob; it lives as long as the program unless release_processed is set. Reports and returns an
  // error for a blob that it does not understand; it must trust nothing in it. *handle may be set to null.
  virtual Error init(BackendInitContext& context, std::span<const std::byte> processed,
                     std::span<const CompileSpecRef> compile_specs, DelegateHandle** handle) = 0;
  // `args` are the inputs, then the outputs.
  virtual Error execute(BackendExecuteContext& context, DelegateHandle* handle, std::span<EValue* const> args) = 0;
  // Called once for each handle that init returned, when the method goes. Memory of allocate() is not to be freed.
  virtual void destroy(DelegateHandle* handle) { (void)handle; }

 protected:
  ~Backend() = default;
};

}  // namespace wb
