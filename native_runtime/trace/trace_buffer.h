// Where the events of an execution go: a ring buffer that another thread may drain while the method runs, and a store
// for copies of intermediate tensors. Nothing here allocates, locks or waits while a method executes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/error.h"
#include "core/tensor.h"
#include "core/trace.h"
#include "trace/ring.h"

namespace wb {

// An event with the number of the execution that it belongs to: counted from 0, over all executions of the buffer.
struct TraceRecord {
  Event event;
  std::uint32_t execution = 0;
};

// A tensor that an instruction wrote; its bytes stand in the debug buffer, without gaps, in the tensor's dim order.
struct OutputRecord {
  Event event;
  std::uint32_t execution = 0;
  std::int32_t index = 0;  // which output of the instruction
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
  std::int32_t sizes[kMaxRank] = {};
  std::uint8_t dim_order[kMaxRank] = {};
  std::uint8_t rank = 0;
  ScalarType dtype = ScalarType::Float;
};

struct TraceOptions {
  std::size_t events = std::size_t{1} << 16;  // slots of the ring; rounded up to a power of two
  bool outputs = false;                       // ask for intermediate tensors
  std::uint32_t output_executions = 1;        // of how many executions; 0: of all
  std::size_t debug_buffer_bytes = 0;
  std::size_t output_records = 0;
};

// One producer (the thread that executes, delegates' own logging included) and one consumer. A method must not be
// executed by two threads into the same buffer.
class TraceBuffer final : public EventSink {
 public:
  explicit TraceBuffer(const TraceOptions& options);

  // False when there was no memory for what the options ask for.
  [[nodiscard]] bool valid() const;

  void record(const Event& event) override;
  [[nodiscard]] bool wants_outputs() const override {
    return wants_outputs_ && executions_.load(std::memory_order_relaxed) < outputs_end_;
  }
  void output(const Event& event, int index, const Tensor& tensor) override;

  // Consumer: calls `take(const TraceRecord&)` for each new event.
  template <typename F>
  std::size_t drain(F&& take) {
    return ring_.drain(static_cast<F&&>(take));
  }

  [[nodiscard]] std::size_t capacity() const { return ring_.capacity(); }
  // Events that wait to be drained.
  [[nodiscard]] std::size_t pending() const { return ring_.size(); }
  // Events that found no room since the start.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_acquire); }
  // Executions that ended.
  [[nodiscard]] std::uint32_t executions() const { return executions_.load(std::memory_order_acquire); }

  // The tensors that are complete so far; stays valid, and may be called while the method runs.
  [[nodiscard]] std::span<const OutputRecord> outputs() const {
    return {records_.get(), record_count_.load(std::memory_order_acquire)};
  }
  // The bytes of those tensors.
  [[nodiscard]] std::span<const std::byte> debug_buffer() const;
  // Tensors that found no room, and the bytes and records that would have held all of them.
  [[nodiscard]] std::uint64_t outputs_dropped() const { return outputs_dropped_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t bytes_wanted() const { return bytes_wanted_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t records_wanted() const { return records_wanted_.load(std::memory_order_acquire); }

  // Not while a method runs. Makes room for outputs (never less than before; what stands there is lost) and forgets
  // the outputs and what was dropped of them. The next executions' outputs are recorded again.
  [[nodiscard]] Error reserve_outputs(std::size_t bytes, std::size_t records);
  void clear_outputs();

 private:
  bool wants_outputs_;
  std::uint32_t output_executions_;
  std::uint64_t outputs_end_ = 0;  // the first execution whose outputs are not asked for any more
  Ring<TraceRecord> ring_;
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint32_t> executions_{0};

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t byte_capacity_ = 0;
  std::size_t byte_count_ = 0;
  std::unique_ptr<OutputRecord[]> records_;
  std::size_t record_capacity_ = 0;
  std::atomic<std::size_t> record_count_{0};
  std::atomic<std::uint64_t> outputs_dropped_{0};
  std::atomic<std::uint64_t> bytes_wanted_{0};
  std::atomic<std::uint64_t> records_wanted_{0};
  bool storage_failed_ = false;
};

}  // namespace wb
