#include "trace/trace_buffer.h"

#include <cstring>
#include <new>

namespace wb {
namespace {

// Slots that only whole executions and loads may take: what ends an execution is told even when its instructions
// filled the ring, so that the reader still sees where one ends.
constexpr std::size_t kReserve = 16;
constexpr std::size_t kAlignment = 16;  // of each tensor in the debug buffer

// Only the executing thread writes these counters: no need for an atomic addition.
template <typename T>
void add(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_release);
}

constexpr std::size_t round_up(std::size_t value) { return (value + kAlignment - 1) & ~(kAlignment - 1); }

}  // namespace

TraceBuffer::TraceBuffer(const TraceOptions& options)
    : wants_outputs_(options.outputs),
      output_executions_(options.output_executions),
      ring_(options.events < 2 * kReserve ? 2 * kReserve : options.events) {
  storage_failed_ = reserve_outputs(options.debug_buffer_bytes, options.output_records) != Error::Ok;
}

bool TraceBuffer::valid() const { return ring_.valid() && !storage_failed_; }

void TraceBuffer::record(const Event& event) {
  const bool inside = event.kind == EventKind::Instruction || event.kind == EventKind::Delegate;
  if (TraceRecord* const slot = ring_.claim(inside ? kReserve : 0); __builtin_expect(slot != nullptr, 1)) {
    slot->event = event;
    slot->execution = executions_.load(std::memory_order_relaxed);
    ring_.publish();
  } else {
    add<std::uint64_t>(dropped_, 1);
  }
  if (event.kind == EventKind::Execute) add<std::uint32_t>(executions_, 1);
}

void TraceBuffer::output(const Event& event, int index, const Tensor& tensor) {
  const std::size_t nbytes = tensor.data == nullptr ? 0 : tensor.nbytes();
  add<std::uint64_t>(bytes_wanted_, round_up(nbytes));
  add<std::uint64_t>(records_wanted_, 1);
  const std::size_t count = record_count_.load(std::memory_order_relaxed);
  if (count == record_capacity_ || nbytes > byte_capacity_ - byte_count_) {
    add<std::uint64_t>(outputs_dropped_, 1);
    return;
  }
  OutputRecord& record = records_[count];
  record.event = event;
  record.execution = executions_.load(std::memory_order_relaxed);
  record.index = index;
  record.offset = byte_count_;
  record.nbytes = nbytes;
  record.rank = tensor.rank;
  record.dtype = tensor.dtype;
  for (int d = 0; d < tensor.rank; ++d) {
    record.sizes[d] = tensor.sizes[d];
    record.dim_order[d] = tensor.dim_order[d];
  }
  if (nbytes != 0) std::memcpy(bytes_.get() + byte_count_, tensor.data, nbytes);
  const std::size_t next = byte_count_ + round_up(nbytes);
  byte_count_ = next < byte_capacity_ ? next : byte_capacity_;
  record_count_.store(count + 1, std::memory_order_release);
}

std::span<const std::byte> TraceBuffer::debug_buffer() const {
  const auto known = outputs();
  if (known.empty()) return {};
  return {bytes_.get(), static_cast<std::size_t>(known.back().offset + known.back().nbytes)};
}

Error TraceBuffer::reserve_outputs(std::size_t bytes, std::size_t records) {
  clear_outputs();
  if (bytes > byte_capacity_) {
    std::unique_ptr<std::byte[]> grown(new (std::nothrow) std::byte[bytes]);
    if (grown == nullptr) return Error::MemoryAllocationFailed;
    bytes_ = std::move(grown);
    byte_capacity_ = bytes;
  }
  if (records > record_capacity_) {
    std::unique_ptr<OutputRecord[]> grown(new (std::nothrow) OutputRecord[records]);
    if (grown == nullptr) return Error::MemoryAllocationFailed;
    records_ = std::move(grown);
    record_capacity_ = records;
  }
  return Error::Ok;
}

void TraceBuffer::clear_outputs() {
  outputs_end_ = output_executions_ == 0
                     ? UINT64_MAX
                     : std::uint64_t{executions_.load(std::memory_order_relaxed)} + output_executions_;
  byte_count_ = 0;
  record_count_.store(0, std::memory_order_release);
  outputs_dropped_.store(0, std::memory_order_release);
  bytes_wanted_.store(0, std::memory_order_release);
  records_wanted_.store(0, std::memory_order_release);
}

}  // namespace wb
