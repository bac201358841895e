// The pool: every index once, also with two callers, inside a task, after a fork; what a run costs.
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "engine/pool.h"
#include "engine/test_support.h"

namespace wb::engine::test {
namespace {

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool each_once(Pool& pool, std::int64_t count) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
  std::atomic<bool> fits{true};
  const int threads = pool.threads();
  pool.parallel(count, [&](std::int64_t i, int thread) {
    seen[static_cast<std::size_t>(i)].fetch_add(1);
    if (thread < 0 || thread >= threads) fits = false;
  });
  return fits && std::ranges::all_of(seen, [](const std::atomic<int>& n) { return n.load() == 1; });
}

void every_index_runs_once(int threads) {
  Pool::instance().set_threads(threads);
  CHECK(Pool::instance().threads() == threads);
  for (const std::int64_t count : {0, 1, 2, 3, 7, 64, 1000}) {
    for (int i = 0; i < 30; ++i) CHECK(each_once(Pool::instance(), count));
  }
  Pool limited(2);
  CHECK(limited.threads() == std::min(threads, 2));
  for (int i = 0; i < 100; ++i) CHECK(each_once(limited, 50));
}

void a_task_may_wait_for_those_before_it(int threads) {
  Pool::instance().set_threads(threads);
  for (int round = 0; round < 200; ++round) {
    std::atomic<std::int64_t> done{0};
    const std::int64_t count = 1 + round % 17;
    Pool::instance().parallel(count, [&](std::int64_t i, int) {
      while (done.load() != i) ::sched_yield();
      done.store(i + 1);
    });
    CHECK(done.load() == count);
  }
}

void a_task_may_run_tasks() {
  std::atomic<int> sum{0};
  Pool::instance().parallel(8, [&](std::int64_t, int) {
    Pool::instance().parallel(8, [&](std::int64_t, int thread) { sum += thread == 0 ? 1 : 100; });
  });
  CHECK(sum == 64);
}

void two_callers_do_not_disturb_each_other() {
  std::atomic<int> wrong{0};
  const auto call = [](void* argument) -> void* {
    for (int i = 0; i < 300; ++i) {
      if (!each_once(Pool::instance(), 20)) ++*static_cast<std::atomic<int>*>(argument);
    }
    return nullptr;
  };
  pthread_t other{};
  CHECK(::pthread_create(&other, nullptr, call, &wrong) == 0);
  call(&wrong);
  ::pthread_join(other, nullptr);
  CHECK(wrong == 0);
}

void a_child_process_has_its_own_threads() {
  const pid_t child = ::fork();
  if (child == 0) {
    bool fits = true;
    for (int i = 0; i < 50; ++i) fits = fits && each_once(Pool::instance(), 30);
    ::_exit(fits ? 0 : 1);
  }
  int status = 1;
  CHECK(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(each_once(Pool::instance(), 30));
}

std::int64_t cost_ns(int threads) {
  Pool::instance().set_threads(threads);
  std::int64_t best = INT64_MAX;
  for (int round = 0; round < 200; ++round) {
    const std::int64_t start = now();
    for (int i = 0; i < 50; ++i) Pool::instance().parallel(threads, [](std::int64_t, int) {});
    best = std::min(best, (now() - start) / 50);
  }
  return best;
}

}  // namespace

void test_pool() {
  const int before = Pool::instance().threads();
  for (const int threads : {1, 2, 3, 4}) every_index_runs_once(threads);
  for (const int threads : {1, 2, 3, 5}) a_task_may_wait_for_those_before_it(threads);
  Pool::instance().set_threads(4);
  a_task_may_run_tasks();
  two_callers_do_not_disturb_each_other();
  a_child_process_has_its_own_threads();
  std::printf("a run of the pool: %lld ns with one thread, %lld with two\n", static_cast<long long>(cost_ns(1)),
              static_cast<long long>(cost_ns(2)));
  CHECK(cost_ns(1) < 100);
  Pool::instance().set_threads(before);
}

}  // namespace wb::engine::test
