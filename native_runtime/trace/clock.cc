// now_ns(): CLOCK_MONOTONIC, read in about 10 ns where the processor's own counter can stand in for the system call's
// page (which takes about 24 ns on the same machine).
//
// Two readings of both clocks, as far apart as the life of the process allows, give the rate; the first is taken
// while the library is loaded, the second at the first use, so that neither waits in practice. With at least 2 ms
// between them and readings bracketed to some 20 ns the rate is right to 10 parts in a million.
#include <time.h>

#include <atomic>
#include <cstdint>

#include "core/trace.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace wb {
namespace {

std::uint64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

#if defined(__x86_64__)

// The counter runs at one rate in all power states (invariant TSC, CPUID 8000'0007 EDX bit 8).
bool counter_is_steady() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && ((d >> 8) & 1U) != 0;
}
std::uint64_t counter() { return __rdtsc(); }

#elif defined(__aarch64__)

bool counter_is_steady() { return true; }
std::uint64_t counter() {
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}

#else

bool counter_is_steady() { return false; }
std::uint64_t counter() { return 0; }

#endif

struct Reading {
  std::uint64_t ticks;
  std::uint64_t ns;
};

// Both clocks at one time: the best of some attempts, for a thread may be preempted between the two.
Reading read_both() {
  Reading best{};
  std::uint64_t width = UINT64_MAX;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::uint64_t before = counter();
    const std::uint64_t ns = monotonic_ns();
    const std::uint64_t after = counter();
    if (after - before < width) {
      width = after - before;
      best = {before + width / 2, ns};
    }
  }
  return best;
}

constexpr std::uint64_t kShortestSpan = 2'000'000;

enum class State : int { Unknown, Calibrating, Counter, SystemCall };

class Clock {
 public:
  Clock() : base_(read_both()) {}

  std::uint64_t now() {
    if (__builtin_expect(state_.load(std::memory_order_acquire) == State::Counter, 1)) {
      const std::uint64_t ticks = counter() - base_.ticks;
      return base_.ns + static_cast<std::uint64_t>((static_cast<unsigned __int128>(ticks) * rate_) >> 32);
    }
    return calibrated() ? now() : monotonic_ns();
  }

 private:
  // Out of line: decides once. Threads that come meanwhile ask the system.
  __attribute__((noinline)) bool calibrated() {
    State expected = State::Unknown;
    if (!state_.compare_exchange_strong(expected, State::Calibrating)) return expected == State::Counter;
    if (!counter_is_steady()) {
      state_.store(State::SystemCall, std::memory_order_release);
      return false;
    }
    Reading end = read_both();
    while (end.ns - base_.ns < kShortestSpan) end = read_both();
    const std::uint64_t ticks = end.ticks - base_.ticks;
    const bool plausible = end.ticks > base_.ticks && ticks < (UINT64_C(1) << 62);
    if (plausible) {
      rate_ = static_cast<std::uint64_t>((static_cast<unsigned __int128>(end.ns - base_.ns) << 32) / ticks);
    }
    state_.store(plausible ? State::Counter : State::SystemCall, std::memory_order_release);
    return plausible;
  }

  Reading base_;
  std::uint64_t rate_ = 0;  // ns per tick, 32 fractional bits
  std::atomic<State> state_{State::Unknown};
};

Clock clock;

}  // namespace

std::uint64_t now_ns() { return clock.now(); }

}  // namespace wb
