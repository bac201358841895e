// The threads of the engine: one set for the process, started when they are first needed. The caller works too; with a
// limit of one no thread is started. Waiting threads spin for some microseconds before they sleep, so that a network of
// small layers pays about a microsecond a layer and an idle process pays nothing.
#pragma once

#include <cstdint>

namespace wb::engine {

class Pool {
 public:
  using Task = void (*)(void* argument, std::int64_t index, int thread);

  static constexpr int kMostThreads = 128;

  // A view of the process's threads that uses at most `limit` of them: what was sized for a number of threads never
  // sees more of them, whatever set_threads is told later.
  constexpr explicit Pool(int limit) : limit_(limit) {}

  [[nodiscard]] static Pool& instance();

  // Threads that run() uses, the caller included. By default the processors that this process may run on, or the
  // environment variable LOWERING_WORKBENCH_THREADS.
  [[nodiscard]] int threads() const;
  // For the whole process.
  void set_threads(int count);

  // task(argument, i, thread) for each i in [0, count), thread in [0, threads()). Returns when all are done. A task may
  // wait for those with smaller indices: the caller, if nobody else, takes the smallest one that is left. Runs are one
  // at a time: a second caller (of another interpreter thread) works alone as thread 0, and so does a task that calls
  // run().
  void run(Task task, void* argument, std::int64_t count);

  template <typename F>
  void parallel(std::int64_t count, F&& f) {
    run([](void* argument, std::int64_t index, int thread) { (*static_cast<F*>(argument))(index, thread); }, &f, count);
  }

 private:
  int limit_;
};

}  // namespace wb::engine
