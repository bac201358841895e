// What the executor and the delegates tell about a running method. The receiver (a lock-free ring buffer, `trace/`)
// is behind one pointer; null means off, and costs one comparison.
#pragma once

#include <cstdint>

namespace wb {

enum class EventKind : std::uint8_t {
  Instruction = 0,  // one instruction of a chain, kernels and delegates alike
  Delegate = 1,     // something inside a delegate call
  Execute = 2,      // a whole execution of a method
  Load = 3,         // loading of a program or a method
  Output = 4,       // the tensor that an instruction wrote (intermediate outputs for numeric comparison)
};

// Times are nanoseconds of CLOCK_MONOTONIC. `name` points to memory that lives as long as the method.
struct Event {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  const char* name = nullptr;
  std::int32_t chain = -1;
  std::int32_t instruction = -1;
  std::int32_t delegate_debug_id = -1;  // of EventKind::Delegate, when the identifier is a number
  EventKind kind = EventKind::Instruction;
  const char* delegate_debug_name = nullptr;  // of EventKind::Delegate, when the identifier is a string
};

struct Tensor;

class EventSink {
 public:
  virtual void record(const Event& event) = 0;
  // True if the values of intermediate tensors are asked for. Then output() is called after each instruction.
  [[nodiscard]] virtual bool wants_outputs() const = 0;
  virtual void output(const Event& event, int index, const Tensor& tensor) = 0;

 protected:
  ~EventSink() = default;
};

[[nodiscard]] std::uint64_t now_ns();

}  // namespace wb
