#include "base/thread_pool.h"

#include <algorithm>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ferry {
namespace {

constexpr int kJobs =
    16;  // calls at once that get help; further ones run on their own thread alone

// About 30 us on a processor whose pause takes 140 cycles: longer than the gap between two layers.
constexpr int kSpins = 700;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Waits until `value` is no longer `old`: a while by looking, then in the kernel.
void wait_while(const std::atomic<int>& value, int old, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

int spins_for(int threads) {
  // More threads than cores: whoever spins keeps the one it waits for from running.
  return threads <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpins : 1;
}

}  // namespace

// One running call. Its plain members are written before a part is opened and stay until every part
// is finished; whoever closes an open part therefore reads the call that the part belongs to.
struct ThreadPool::Job {
  struct alignas(64) Part {
    std::atomic<bool> open{false};
  };

  std::atomic<bool> taken{false};
  RangeFn range = nullptr;
  void* context = nullptr;
  int64_t tasks = 0;
  int parts = 0;
  alignas(64) std::atomic<int> unfinished{0};
  Part part[kMaxThreads];

  bool claim(int p) {
    return part[p].open.load(std::memory_order_relaxed) &&
           part[p].open.exchange(false, std::memory_order_acquire);
  }

  void run_part(int p) {
    range(context, range_begin(tasks, parts, p), range_begin(tasks, parts, p + 1), p);
  }

  // REQUIRES: claimed.
  void run_claimed(int p) {
    run_part(p);
    if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_all();
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(std::clamp(threads, 1, kMaxThreads)), spins_(spins_for(threads_)) {
  if (threads_ == 1) return;
  jobs_ = std::make_unique<Job[]>(kJobs);
  workers_.reserve(static_cast<size_t>(threads_ - 1));
  for (int worker = 1; worker < threads_; ++worker) {
    workers_.emplace_back([this, worker](std::stop_token stop) { work(stop, worker); });
  }
}

ThreadPool::~ThreadPool() {
  for (std::jthread& worker : workers_) worker.request_stop();
  posted_.fetch_add(1, std::memory_order_release);
  posted_.notify_all();
}

void ThreadPool::run(int64_t tasks, RangeFn range, void* context) {
  if (tasks <= 0) return;
  const int parts = static_cast<int>(std::min<int64_t>(threads_, tasks));
  Job* job = nullptr;
  for (int i = 0; parts > 1 && job == nullptr && i < kJobs; ++i) {
    if (!jobs_[i].taken.load(std::memory_order_relaxed) &&
        !jobs_[i].taken.exchange(true, std::memory_order_acquire)) {
      job = &jobs_[i];
    }
  }
  if (job == nullptr) {
    for (int p = 0; p < parts; ++p) {
      range(context, range_begin(tasks, parts, p), range_begin(tasks, parts, p + 1), p);
    }
    return;
  }

  job->range = range;
  job->context = context;
  job->tasks = tasks;
  job->parts = parts;
  job->unfinished.store(parts - 1, std::memory_order_relaxed);
  for (int p = 1; p < parts; ++p) job->part[p].open.store(true, std::memory_order_release);
  posted_.fetch_add(1, std::memory_order_release);
  posted_.notify_all();

  job->run_part(0);
  for (int p = 1; p < parts; ++p) {
    if (job->claim(p)) job->run_claimed(p);
  }
  for (;;) {
    const int left = job->unfinished.load(std::memory_order_acquire);
    if (left == 0) break;
    wait_while(job->unfinished, left, spins_);
  }
  job->taken.store(false, std::memory_order_release);
}

void ThreadPool::work(std::stop_token stop, int worker) {
  while (!stop.stop_requested()) {
    const int seen = posted_.load(std::memory_order_acquire);
    if (help(worker)) continue;
    if (stop.stop_requested()) return;
    wait_while(posted_, seen, spins_);
  }
}

// Runs one open part, its own first: a worker then meets the same rows of every layer, and their
// data in its cache.
bool ThreadPool::help(int worker) {
  for (int i = 0; i < kJobs; ++i) {
    if (jobs_[i].claim(worker)) {
      jobs_[i].run_claimed(worker);
      return true;
    }
  }
  for (int i = 0; i < kJobs; ++i) {
    for (int p = 1; p < threads_; ++p) {
      if (jobs_[i].claim(p)) {
        jobs_[i].run_claimed(p);
        return true;
      }
    }
  }
  return false;
}

}  // namespace ferry
