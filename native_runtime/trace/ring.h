// A bounded queue from one producer to one consumer, without locks. The producer never waits: what finds no room is
// refused and counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace wb {

// Positions only grow; a slot is `position & mask`. Each side writes one position and keeps a stale copy of the other
// one, which it refreshes only when that copy says full (or empty): so that in the common case the two threads share no
// cache line (the queue of Rigtorp's SPSCQueue; Lamport, "Proving the Correctness of Multiprocess Programs", 1977).
template <typename T>
class Ring {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // At least `capacity` slots, rounded up to a power of two. valid() is false when there is no memory for them.
  explicit Ring(std::size_t capacity) {
    std::size_t size = 2;
    while (size < capacity && size <= (SIZE_MAX >> 2)) size <<= 1;
    slots_.reset(new (std::nothrow) T[size]);
    if (slots_ != nullptr) mask_ = size - 1;
  }

  [[nodiscard]] bool valid() const { return slots_ != nullptr; }
  [[nodiscard]] std::size_t capacity() const { return slots_ == nullptr ? 0 : mask_ + 1; }

  // Producer. The next slot, to be filled and then published; null when fewer than `reserve` + 1 slots are free.
  [[nodiscard]] T* claim(std::size_t reserve = 0) {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (__builtin_expect(head - seen_tail_ + reserve > mask_, 0)) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head - seen_tail_ + reserve > mask_) return nullptr;
    }
    return &slots_[head & mask_];
  }
  void publish() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // False when fewer than `reserve` + 1 slots are free.
  bool push(const T& item, std::size_t reserve = 0) {
    T* const slot = claim(reserve);
    if (slot == nullptr) return false;
    *slot = item;
    publish();
    return true;
  }

  // Consumer. Calls `take(item)` for each item that was there at the time of the call; returns how many.
  template <typename F>
  std::size_t drain(F&& take) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    for (std::uint64_t at = tail; at != head; ++at) take(static_cast<const T&>(slots_[at & mask_]));
    tail_.store(head, std::memory_order_release);
    return static_cast<std::size_t>(head - tail);
  }

  // Either side; exact only when the other one rests.
  [[nodiscard]] std::size_t size() const {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    return static_cast<std::size_t>(head_.load(std::memory_order_acquire) - tail);
  }

 private:
  static constexpr std::size_t kCacheLine = 64;

  std::unique_ptr<T[]> slots_;
  std::uint64_t mask_ = 0;
  alignas(kCacheLine) std::atomic<std::uint64_t> head_{0};
  std::uint64_t seen_tail_ = 0;  // of the producer, beside its own position
  alignas(kCacheLine) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace wb
