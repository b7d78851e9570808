// A pool of worker threads for data-parallel loops, made for frames of a few milliseconds that hold
// some sixty short loops: no allocation and no lock a call, a short spin before a worker sleeps,
// one barrier a call (its end).
//
// The work is divided before it starts, into one contiguous range a worker, and the division
// depends on nothing but the number of tasks and of threads. So a loop that keeps its tasks apart
// gives the same bits every time, whoever runs them. The calling thread takes part, and finishes
// alone what no worker has begun: a call never waits for an idle worker to wake, calls from several
// threads at once cannot deadlock, and a call from inside a task simply runs there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

class ThreadPool {
 public:
  // `threads` counts the caller: 1 makes no thread at all. Clamped to [1, kMaxThreads].
  explicit ThreadPool(int threads);
  ~ThreadPool();  // REQUIRES: no call is running
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  static constexpr int kMaxThreads = 64;

  // How many ranges a call is divided into; `worker` below is less than this.
  int threads() const { return threads_; }

  // Calls range(begin, end, worker) once for each worker whose share of [0, tasks) is not empty,
  // and returns when all have returned. `worker` names the range, not the thread: two ranges of one
  // call never have the same worker, so it may index scratch memory that the caller owns. What the
  // tasks wrote is visible to the caller afterwards. `range` must not throw. Threads may share the
  // pool.
  template <class F>
  void parallel_ranges(int64_t tasks, F&& range) {
    using Fn = std::remove_reference_t<F>;
    run(
        tasks,
        [](void* context, int64_t begin, int64_t end, int worker) {
          (*static_cast<Fn*>(context))(begin, end, worker);
        },
        const_cast<std::remove_const_t<Fn>*>(std::addressof(range)));
  }

  // Calls fn(task, worker) for every task in [0, tasks); otherwise as above.
  template <class F>
  void parallel_for(int64_t tasks, F&& fn) {
    parallel_ranges(tasks, [&fn](int64_t begin, int64_t end, int worker) {
      for (int64_t task = begin; task < end; ++task) fn(task, worker);
    });
  }

  // The share of [0, tasks) that `worker` of `threads` gets: [range_begin(w), range_begin(w + 1)).
  static int64_t range_begin(int64_t tasks, int threads, int worker) {
    return tasks / threads * worker + tasks % threads * worker / threads;
  }

 private:
  using RangeFn = void (*)(void* context, int64_t begin, int64_t end, int worker);
  struct Job;

  void run(int64_t tasks, RangeFn range, void* context);
  void work(std::stop_token stop, int worker);
  bool help(int worker);

  const int threads_;
  const int spins_;                    // looks before a waiting thread sleeps
  std::unique_ptr<Job[]> jobs_;        // calls that are running now, a fixed number
  std::atomic<int> posted_{0};         // counts calls; sleeping workers wait on it
  std::vector<std::jthread> workers_;  // last member: joins before the rest goes
};

}  // namespace ferry
