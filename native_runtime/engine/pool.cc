#include "engine/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>

namespace wb::engine {
namespace {

// A worker that finds nothing to do looks again for this long before it sleeps: longer than the serial layers between
// two parallel ones take, short enough not to be seen in the processor time of an idle process.
constexpr std::int64_t kSpinNs = 60'000;
constexpr int kLooksBetweenClocks = 64;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::int64_t clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Each thread has a run of a job's indices, in one word, and takes them in their order; who has none left takes those
// of others. So threads do the same part of one job after another, and what they read is in their own caches. Taking an
// index is one compare-and-swap on a word that names the job: whoever succeeds has seen this very job, and the job
// can't end before the index that he took is done.
//   bits 0-23 next index, 24-47 end, 48-63 generation
constexpr int kIndexBits = 24;
constexpr std::int64_t kMostIndices = (std::int64_t{1} << kIndexBits) - 1;
struct Indices {
  std::uint64_t bits;

  static Indices make(std::uint64_t generation, std::int64_t begin, std::int64_t end) {
    return {generation << 48 | static_cast<std::uint64_t>(end) << 24 | static_cast<std::uint64_t>(begin)};
  }
  [[nodiscard]] std::int64_t next() const { return static_cast<std::int64_t>(bits & kMostIndices); }
  [[nodiscard]] std::int64_t end() const { return static_cast<std::int64_t>(bits >> kIndexBits & kMostIndices); }
  [[nodiscard]] std::uint64_t generation() const { return bits >> 48; }
  [[nodiscard]] bool empty() const { return next() >= end(); }
  [[nodiscard]] Indices without_first() const { return {bits + 1}; }
};

// The latest job: its generation and the threads that it is for.
struct Ticket {
  std::uint64_t bits;

  static Ticket make(std::uint64_t generation, int threads) {
    return {generation << 16 | static_cast<std::uint64_t>(threads)};
  }
  [[nodiscard]] int threads() const { return static_cast<int>(bits & 0xffff); }
  [[nodiscard]] std::uint64_t generation() const { return bits >> 16; }
};

struct alignas(64) Run {
  std::atomic<std::uint64_t> indices{0};
};

class Workers {
 public:
  [[nodiscard]] int threads() {
    const int known = threads_.load(std::memory_order_relaxed);
    return known != 0 ? known : init();
  }
  void set_threads(int count) { threads_.store(std::clamp(count, 1, Pool::kMostThreads), std::memory_order_relaxed); }

  // False: somebody else has the workers.
  bool run(Pool::Task task, void* argument, std::int64_t count, int threads) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    while (started_ < threads - 1 && start(started_ + 1)) ++started_;
    task_ = task;
    argument_ = argument;
    done_.store(0, std::memory_order_relaxed);
    const int used = std::min(threads, started_ + 1);
    const std::uint64_t generation = ++generation_ & 0xffff;
    for (int t = 0; t < used; ++t) {
      const Indices indices = Indices::make(generation, count * t / used, count * (t + 1) / used);
      runs_[t].indices.store(indices.bits, std::memory_order_release);
    }
    ticket_.store(Ticket::make(generation, used).bits);
    if (sleepers_.load() != 0) wake();
    work(0);
    wait_until_done(count);
    busy_.store(false, std::memory_order_release);
    return true;
  }

  // In the child of a fork: its only thread is the one that forked.
  void forget() {
    started_ = 0;
    sleepers_.store(0);
    ticket_.store(0);
    for (Run& run : runs_) run.indices.store(0);
    busy_.store(false);
  }

 private:
  int init();

  bool start(int thread) {
    pthread_attr_t attributes;
    if (::pthread_attr_init(&attributes) != 0) return false;
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t id{};
    ids_[thread] = thread;
    // Signals are for the threads of the program around us.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = ::pthread_create(&id, &attributes, &Workers::main, &ids_[thread]);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
    return failed == 0;
  }

  static void* main(void* thread);

  // Takes indices of the open job until there is none.
  void work(int thread) {
    const Ticket ticket{ticket_.load(std::memory_order_acquire)};
    if (thread >= ticket.threads()) return;
    for (int i = 0; i < ticket.threads(); ++i) {
      const int from = (thread + i) % ticket.threads();
      std::int64_t index = 0;
      while (take(from, ticket.generation(), &index)) {
        task_(argument_, index, thread);
        done_.fetch_add(1, std::memory_order_release);
      }
    }
  }

  // The first one of the indices that a thread has left.
  bool take(int from, std::uint64_t generation, std::int64_t* index) {
    std::atomic<std::uint64_t>& word = runs_[from].indices;
    Indices left{word.load(std::memory_order_acquire)};
    while (left.generation() == generation && !left.empty()) {
      if (!word.compare_exchange_weak(left.bits, left.without_first().bits, std::memory_order_acquire)) continue;
      *index = left.next();
      return true;
    }
    return false;
  }

  // Has the latest job something left for this thread?
  [[nodiscard]] bool open_for(int thread, std::memory_order order) const {
    const Ticket ticket{ticket_.load(order)};
    if (thread >= ticket.threads()) return false;
    for (int t = 0; t < ticket.threads(); ++t) {
      const Indices left{runs_[t].indices.load(order)};
      if (left.generation() == ticket.generation() && !left.empty()) return true;
    }
    return false;
  }

  // The last indices may be with threads that the system has put aside: then its processor is better left to them.
  void wait_until_done(std::int64_t count) {
    for (int looks = 0; done_.load(std::memory_order_acquire) != count; ++looks) {
      if (looks < 4096) {
        pause();
      } else {
        ::sched_yield();
      }
    }
  }

  void serve(int thread) {
    for (;;) {
      work(thread);
      if (!spin(thread)) sleep(thread);
    }
  }

  bool spin(int thread) {
    const std::int64_t end = clock_ns() + kSpinNs;
    do {
      for (int i = 0; i < kLooksBetweenClocks; ++i) {
        if (open_for(thread, std::memory_order_relaxed)) return true;
        pause();
      }
    } while (clock_ns() < end);
    return false;
  }

  // Either the caller sees that this thread sleeps, or this thread sees the caller's ticket.
  void sleep(int thread) {
    sleepers_.fetch_add(1);
    const std::uint32_t epoch = epoch_.load();
    if (!open_for(thread, std::memory_order_seq_cst)) {
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&epoch_), FUTEX_WAIT_PRIVATE, epoch, nullptr, nullptr, 0);
    }
    sleepers_.fetch_sub(1);
  }

  void wake() {
    epoch_.fetch_add(1);
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&epoch_), FUTEX_WAKE_PRIVATE, Pool::kMostThreads, nullptr,
              nullptr, 0);
  }

  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  Run runs_[Pool::kMostThreads];
  alignas(64) std::atomic<std::int64_t> done_{0};
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<int> threads_{0};
  // Read by whoever holds an index; written while busy_ is held and no index is out.
  Pool::Task task_ = nullptr;
  void* argument_ = nullptr;
  // Only while busy_ is held.
  std::uint64_t generation_ = 0;
  int started_ = 0;
  int ids_[Pool::kMostThreads] = {};
};

constinit Workers workers;

void* Workers::main(void* thread) {
  workers.serve(*static_cast<int*>(thread));
  return nullptr;
}

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int Workers::init() {
  static const bool once = [] {
    ::pthread_atfork(nullptr, nullptr, [] { workers.forget(); });
    return true;
  }();
  (void)once;
  const char* text = std::getenv("LOWERING_WORKBENCH_THREADS");
  const long wanted = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  int none = 0;
  const int count =
      std::clamp(wanted >= 1 ? static_cast<int>(std::min(wanted, 1L << 20)) : processors(), 1, Pool::kMostThreads);
  threads_.compare_exchange_strong(none, count);
  return threads_.load(std::memory_order_relaxed);
}

constinit Pool unlimited(Pool::kMostThreads);

}  // namespace

Pool& Pool::instance() { return unlimited; }

int Pool::threads() const { return std::min(limit_, workers.threads()); }

void Pool::set_threads(int count) {
  (void)workers.threads();  // the handler of fork
  workers.set_threads(count);
}

void Pool::run(Task task, void* argument, std::int64_t count) {
  const int most = count > 1 ? threads() : 1;
  if (most > 1 && count <= kMostIndices && workers.run(task, argument, count, most)) return;
  for (std::int64_t i = 0; i < count; ++i) task(argument, i, 0);
}

}  // namespace wb::engine
