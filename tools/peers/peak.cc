// Measures the fp32 multiply-add peak of this machine: dependent chains of FMAs in registers, as
// many as hide the latency, for AVX2 (ymm) and AVX-512 (zmm), on one thread and on all of them.
// It also measures the round trip of a cache line between two cores ("pingpong"), because engines
// that synchronise often depend on where a hypervisor put the two.
//
//     g++ -O2 -pthread peak.cc -o peak && ./peak [seconds a row; 0: the round trip only]
//
// Prints one line a row: `fp32 avx512f 2 234.5` (threads, GFLOP/s; an FMA counts two) and
// `pingpong 0-1 81` (the two cores, ns).

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kChains = 12;             // latency 4 x 2 ports, and some; fits 16 ymm registers
constexpr int64_t kSteps = 1'000'000;  // 2 to 3 ms a call

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The accumulators converge to b / (1 - a): no denormals, no infinities. `volatile` keeps them.
#define FERRY_FMA_LOOP(VEC, SET1, FMA, STORE, LANES)              \
  VEC acc[kChains];                                               \
  for (int i = 0; i < kChains; ++i) acc[i] = SET1(float(i));      \
  const VEC a = SET1(0.5f), b = SET1(1.0f);                       \
  for (int64_t step = 0; step < kSteps; ++step) {                 \
    _Pragma("GCC unroll 12") for (int i = 0; i < kChains; ++i) {  \
      acc[i] = FMA(acc[i], a, b);                                 \
    }                                                             \
  }                                                               \
  alignas(64) float out[LANES];                                   \
  for (int i = 0; i < kChains; ++i) {                             \
    STORE(out, acc[i]);                                           \
    volatile float sink = out[0];                                 \
    (void)sink;                                                   \
  }                                                               \
  return 2.0 * LANES * kChains * double(kSteps);

#pragma GCC push_options
#pragma GCC target("avx2,fma")
double fma_avx2() {
  FERRY_FMA_LOOP(__m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_store_ps, 8)
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f")
double fma_avx512() {
  FERRY_FMA_LOOP(__m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_store_ps, 16)
}
#pragma GCC pop_options

// The cores this process may use, which need not be 0 and 1.
std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  return cores;
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// GFLOP/s over all threads: each repeats `loop` for `seconds`, after one call to warm up, and its
// 90th percentile counts: a peak is what the core can do, not what others left of it.
double measure(double (*loop)(), const std::vector<int>& cores, size_t threads, double seconds) {
  std::vector<double> rates(threads);
  std::atomic<size_t> ready{0};
  std::vector<std::thread> workers;
  for (size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      pin(cores[t]);
      loop();
      ready.fetch_add(1);
      while (ready.load() < threads) {
      }
      std::vector<double> calls;
      const Clock::time_point start = Clock::now();
      while (seconds_since(start) < seconds) {
        const Clock::time_point begin = Clock::now();
        const double flops = loop();
        calls.push_back(flops / seconds_since(begin) / 1e9);
      }
      std::sort(calls.begin(), calls.end());
      rates[t] = calls[calls.size() * 9 / 10];
    });
  }
  for (std::thread& worker : workers) worker.join();
  double sum = 0;
  for (double rate : rates) sum += rate;
  return sum;
}

// Nanoseconds of one round trip of a cache line between two pinned threads; median of batches.
double ping_pong(int core_a, int core_b) {
  constexpr int kBatches = 50, kTrips = 2000;
  alignas(64) std::atomic<int> ball{0};
  std::thread other([&] {
    pin(core_b);
    for (int i = 0; i < kBatches * kTrips; ++i) {
      while (ball.load(std::memory_order_acquire) != 1) {
      }
      ball.store(0, std::memory_order_release);
    }
  });
  std::vector<double> batches;
  std::thread self([&] {
    pin(core_a);
    for (int batch = 0; batch < kBatches; ++batch) {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < kTrips; ++i) {
        ball.store(1, std::memory_order_release);
        while (ball.load(std::memory_order_acquire) != 0) {
        }
      }
      batches.push_back(seconds_since(start) * 1e9 / kTrips);
    }
  });
  self.join();
  other.join();
  std::sort(batches.begin(), batches.end());
  return batches[batches.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 0.5;
  const std::vector<int> cores = allowed_cores();
  if (cores.empty() || !(seconds >= 0)) {
    fprintf(stderr, "usage: peak [seconds a row; 0: the round trip only]\n");
    return 1;
  }
  for (size_t threads : {size_t{1}, size_t{2}}) {
    if (threads > cores.size() || seconds == 0) break;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      printf("fp32 avx2 %zu %.1f\n", threads, measure(fma_avx2, cores, threads, seconds));
    }
    if (__builtin_cpu_supports("avx512f")) {
      printf("fp32 avx512f %zu %.1f\n", threads, measure(fma_avx512, cores, threads, seconds));
    }
  }
  if (cores.size() > 1) {
    printf("pingpong %d-%d %.0f\n", cores[0], cores[1], ping_pong(cores[0], cores[1]));
  }
  return 0;
}
