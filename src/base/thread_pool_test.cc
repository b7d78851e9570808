#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

namespace ferry {
namespace {

class ThreadPools : public testing::TestWithParam<int> {};

TEST_P(ThreadPools, RunEveryTaskExactlyOnce) {
  ThreadPool pool(GetParam());
  for (int64_t tasks : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
    pool.parallel_for(tasks, [&](int64_t task, int) { runs[static_cast<size_t>(task)]++; });
    for (const auto& count : runs) EXPECT_EQ(count.load(), 1) << tasks << " tasks";
  }
}

TEST_P(ThreadPools, DivideTheSameWayEveryTime) {
  ThreadPool pool(GetParam());
  for (int64_t tasks : {1, 5, 17, 400}) {
    std::vector<int> first(static_cast<size_t>(tasks), -1);
    pool.parallel_for(tasks, [&](int64_t t, int w) { first[static_cast<size_t>(t)] = w; });
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end())) << "ranges are contiguous, in order";
    EXPECT_EQ(first.front(), 0);
    EXPECT_LT(first.back(), pool.threads());
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<int> again(static_cast<size_t>(tasks), -1);
      pool.parallel_for(tasks, [&](int64_t t, int w) { again[static_cast<size_t>(t)] = w; });
      ASSERT_EQ(again, first);
    }
  }
}

TEST_P(ThreadPools, NeverRunTwoRangesOfACallAsTheSameWorker) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> scratch(
      static_cast<size_t>(pool.threads()));  // unsynchronised: TSan watches
  for (int repeat = 0; repeat < 2000; ++repeat) {
    pool.parallel_for(100, [&](int64_t, int worker) { scratch[static_cast<size_t>(worker)]++; });
  }
  EXPECT_EQ(std::accumulate(scratch.begin(), scratch.end(), int64_t{0}), 200'000);
}

TEST_P(ThreadPools, ServeManyCallersAtOnce) {
  ThreadPool pool(GetParam());
  constexpr int kCallers = 20, kCalls = 200, kTasks = 37;  // more callers than job slots
  std::vector<int64_t> sums(kCallers);
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
      callers.emplace_back([&, caller] {
        std::vector<int64_t> cells(kTasks);
        for (int call = 0; call < kCalls; ++call) {
          pool.parallel_for(kTasks, [&](int64_t t, int) { cells[static_cast<size_t>(t)] += t; });
        }
        sums[static_cast<size_t>(caller)] = std::accumulate(cells.begin(), cells.end(), int64_t{0});
      });
    }
  }
  for (int64_t sum : sums) EXPECT_EQ(sum, int64_t{kCalls} * kTasks * (kTasks - 1) / 2);
}

TEST_P(ThreadPools, AcceptACallFromInsideATask) {
  ThreadPool pool(GetParam());
  std::atomic<int> count{0};
  pool.parallel_for(8, [&](int64_t, int) { pool.parallel_for(8, [&](int64_t, int) { count++; }); });
  EXPECT_EQ(count.load(), 64);
}

TEST_P(ThreadPools, StopAtOnceWhetherIdleOrJustUsed) {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(GetParam());
    if (i % 2) pool.parallel_for(3, [](int64_t, int) {});
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPools, testing::Values(1, 2, 3, 8));

TEST(ThreadPool, ClampsTheNumberOfThreads) {
  EXPECT_EQ(ThreadPool(0).threads(), 1);
  EXPECT_EQ(ThreadPool(-5).threads(), 1);
}

TEST(ThreadPool, DividesTasksIntoRangesThatDifferByAtMostOne) {
  for (int64_t tasks : {0, 1, 10, 63, 1000}) {
    for (int threads : {1, 2, 3, 7, 64}) {
      EXPECT_EQ(ThreadPool::range_begin(tasks, threads, 0), 0);
      EXPECT_EQ(ThreadPool::range_begin(tasks, threads, threads), tasks);
      for (int w = 0; w < threads; ++w) {
        const int64_t size = ThreadPool::range_begin(tasks, threads, w + 1) -
                             ThreadPool::range_begin(tasks, threads, w);
        EXPECT_GE(size, tasks / threads);
        EXPECT_LE(size, tasks / threads + 1);
      }
    }
  }
}

}  // namespace
}  // namespace ferry
