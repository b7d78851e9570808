// Bursts of dependent chains in registers, as many as hide the latency, and one walk through a
// large buffer. Every arithmetic has a list of ways to do it, best first; the first one that this
// processor can run is the peak. FERRY_CPU_ISA is not looked at: it limits ferry, not the machine.
#include "perf/peak.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <span>
#include <thread>
#include <vector>

// Vector code stands in `#pragma GCC target` regions, which clang does not know.
#if defined(__x86_64__) && !defined(__clang__)
#define FERRY_PEAK_X86 1
#include <immintrin.h>
#endif

namespace ferry::perf {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSteps = 50'000;  // a call takes 0.1 to 0.3 ms

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One way to do an arithmetic: `run` does a fixed amount of work and returns its operations.
struct Loop {
  const char* isa;
  bool (*supported)();
  double (*run)();
};

template <class T>
void keep(const T& value) {  // the loop that computed it may not be removed
  asm volatile("" : : "m"(value));
}

bool always() { return true; }

double f32_portable() {
  constexpr int kLanes = 32;
  float acc[kLanes] = {};
  volatile float half = 0.5F;
  const float a = half;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (float& value : acc) value = value * a + 1.0F;
  }
  keep(acc);
  return 2.0 * kLanes * kSteps;
}

#ifdef FERRY_PEAK_X86

constexpr int kChains = 12;  // latency 4 or 5 x 2 ports, and some; fits 16 ymm registers

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() { return __builtin_cpu_supports("avx512f"); }
bool has_avx512_bf16() { return __builtin_cpu_supports("avx512bf16"); }
bool has_avx512_vnni() { return __builtin_cpu_supports("avx512vnni"); }
bool has_avx_vnni() { return __builtin_cpu_supports("avxvnni"); }

// Chains of `acc = STEP(acc)`. A fused multiply-add by 0.5 and 1 converges: no denormals, no
// infinities.
#define FERRY_CHAINS(VEC, ZERO, STEP)                                       \
  VEC acc[kChains];                                                         \
  _Pragma("GCC unroll 12") for (int i = 0; i < kChains; ++i) acc[i] = ZERO; \
  for (int64_t step = 0; step < kSteps; ++step) {                           \
    _Pragma("GCC unroll 12") for (int i = 0; i < kChains; ++i) {            \
      acc[i] = STEP(acc[i]);                                                \
      asm volatile("" : "+v"(acc[i]));                                      \
    }                                                                       \
  }                                                                         \
  _Pragma("GCC unroll 12") for (int i = 0; i < kChains; ++i) asm volatile("" : : "v"(acc[i]))

constexpr double kMultiplyAdds = 2.0 * kChains * kSteps;  // operations, one lane

#pragma GCC push_options
#pragma GCC target("avx2,fma")
double f32_avx2() {
  const __m256 a = _mm256_set1_ps(0.5F), b = _mm256_set1_ps(1.0F);
#define FERRY_STEP(acc) _mm256_fmadd_ps(acc, a, b)
  FERRY_CHAINS(__m256, _mm256_setzero_ps(), FERRY_STEP);
#undef FERRY_STEP
  return kMultiplyAdds * 8;
}

inline __m256i fresh(__m256i value) {  // the compiler may not reuse what it computed from it
  asm volatile("" : "+x"(value));
  return value;
}

double int8_avx2() {
  const __m256i a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(2), ones = _mm256_set1_epi16(1);
#define FERRY_STEP(acc) \
  _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(a, fresh(b)), ones))
  FERRY_CHAINS(__m256i, _mm256_setzero_si256(), FERRY_STEP);
#undef FERRY_STEP
  return kMultiplyAdds * 32;
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avxvnni")
double int8_avx_vnni() {
  const __m256i a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(2);
#define FERRY_STEP(acc) _mm256_dpbusd_avx_epi32(acc, a, b)
  FERRY_CHAINS(__m256i, _mm256_setzero_si256(), FERRY_STEP);
#undef FERRY_STEP
  return kMultiplyAdds * 32;
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f")
double f32_avx512() {
  const __m512 a = _mm512_set1_ps(0.5F), b = _mm512_set1_ps(1.0F);
#define FERRY_STEP(acc) _mm512_fmadd_ps(acc, a, b)
  FERRY_CHAINS(__m512, _mm512_setzero_ps(), FERRY_STEP);
#undef FERRY_STEP
  return kMultiplyAdds * 16;
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")
double bf16_avx512() {
  const auto a = (__m512bh)_mm512_set1_epi16(0x3f80), b = (__m512bh)_mm512_set1_epi16(0x3f80);
#define FERRY_STEP(acc) _mm512_dpbf16_ps(acc, a, b)
  FERRY_CHAINS(__m512, _mm512_setzero_ps(), FERRY_STEP);
#undef FERRY_STEP
  return kMultiplyAdds * 32;
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vnni")
double int8_avx512_vnni() {
  const __m512i a = _mm512_set1_epi32(0x01010101), b = _mm512_set1_epi32(0x02020202);
#define FERRY_STEP(acc) _mm512_dpbusd_epi32(acc, a, b)
  FERRY_CHAINS(__m512i, _mm512_setzero_si512(), FERRY_STEP);
#undef FERRY_STEP
  return kMultiplyAdds * 64;
}
#pragma GCC pop_options

// AMX: tiles of 16 rows x 64 bytes. The kernel gives them to a process that asks.
bool may_use_tiles() {
  constexpr int64_t kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl(2)
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
bool has_amx_bf16() { return __builtin_cpu_supports("amx-bf16") && may_use_tiles(); }
bool has_amx_int8() { return __builtin_cpu_supports("amx-int8") && may_use_tiles(); }

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Four accumulators, fed by tiles 4 to 7 as a matrix product feeds them.
#define FERRY_TILE_LOOP(PRODUCT)                                   \
  const TileConfig config;                                         \
  keep(config); /* gcc 12 takes only its first 8 bytes for read */ \
  _tile_loadconfig(&config);                                       \
  _tile_zero(0);                                                   \
  _tile_zero(1);                                                   \
  _tile_zero(2);                                                   \
  _tile_zero(3);                                                   \
  _tile_zero(4);                                                   \
  _tile_zero(5);                                                   \
  _tile_zero(6);                                                   \
  _tile_zero(7);                                                   \
  for (int64_t step = 0; step < kSteps / 8; ++step) {              \
    PRODUCT(0, 4, 6);                                              \
    PRODUCT(1, 4, 7);                                              \
    PRODUCT(2, 5, 6);                                              \
    PRODUCT(3, 5, 7);                                              \
  }                                                                \
  _tile_release()

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")
double bf16_amx() {
  FERRY_TILE_LOOP(_tile_dpbf16ps);
  return 2.0 * (kSteps / 8) * 4 * (16 * 16 * 32);
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-int8")
double int8_amx() {
  FERRY_TILE_LOOP(_tile_dpbusd);
  return 2.0 * (kSteps / 8) * 4 * (16 * 16 * 64);
}
#pragma GCC pop_options

constexpr Loop kF32[] = {{"avx512", has_avx512, f32_avx512},
                         {"avx2", has_avx2, f32_avx2},
                         {"portable", always, f32_portable}};
constexpr Loop kBf16[] = {{"avx512_bf16", has_avx512_bf16, bf16_avx512}};
constexpr Loop kInt8[] = {{"avx512_vnni", has_avx512_vnni, int8_avx512_vnni},
                          {"avx_vnni", has_avx_vnni, int8_avx_vnni},
                          {"avx2", has_avx2, int8_avx2}};
constexpr Loop kAmxBf16[] = {{"amx_bf16", has_amx_bf16, bf16_amx}};
constexpr Loop kAmxInt8[] = {{"amx_int8", has_amx_int8, int8_amx}};

#else

constexpr Loop kF32[] = {{"portable", always, f32_portable}};
constexpr std::span<const Loop> kBf16, kInt8, kAmxBf16, kAmxInt8;

#endif

// The first that can run here; null: none can.
const Loop* choose(std::span<const Loop> loops) {
  for (const Loop& loop : loops) {
    if (loop.supported()) return &loop;
  }
  return nullptr;
}

// The processors this thread may use, which need not be 0 and 1.
std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) processors.push_back(i);
    }
  }
  return processors;
}

void pin_this_thread(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);  // best effort: an unpinned burst is a burst too
}

// Work a second over all threads. `burst(thread)` does some and returns how much. Each thread
// begins with one burst to warm up, waits for the others, and repeats for `seconds`; its 90th
// percentile counts: a peak is what a core can do, not what others left of it.
double rate(int threads, double seconds, const std::function<double(int thread)>& burst) {
  const std::vector<int> processors = allowed_processors();
  std::vector<double> rates(static_cast<size_t>(threads));
  std::atomic<int> ready{0};
  const auto work = [&](int thread) {
    if (static_cast<size_t>(thread) < processors.size()) {
      pin_this_thread(processors[static_cast<size_t>(thread)]);
    }
    burst(thread);
    ready.fetch_add(1);
    while (ready.load() < threads) std::this_thread::yield();
    std::vector<double> bursts;
    const Clock::time_point start = Clock::now();
    do {
      const Clock::time_point begin = Clock::now();
      const double amount = burst(thread);
      bursts.push_back(amount / seconds_since(begin));
    } while (seconds_since(start) < seconds);
    std::ranges::sort(bursts);
    rates[static_cast<size_t>(thread)] = bursts[bursts.size() * 9 / 10];
  };
  {
    std::vector<std::jthread> workers;
    for (int thread = 0; thread < threads; ++thread) workers.emplace_back(work, thread);
  }
  double sum = 0;
  for (const double one : rates) sum += one;
  return sum;
}

double giga(const Loop* loop, int threads, double seconds) {
  if (loop == nullptr) return 0;
  return 1e-9 * rate(threads, seconds, [loop](int) { return loop->run(); });
}

uint64_t sum_words(std::span<const uint64_t> words) {
  uint64_t sums[16] = {};
  for (size_t i = 0; i + 16 <= words.size(); i += 16) {
    for (size_t lane = 0; lane < 16; ++lane) sums[lane] += words[i + lane];
  }
  uint64_t sum = 0;
  for (const uint64_t one : sums) sum += one;
  return sum;
}

// Twice the last cache, as far as an eighth of the memory allows.
int64_t buffer_bytes() {
  constexpr int64_t kLeast = int64_t{128} << 20, kMost = int64_t{1} << 30;
  const int64_t memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  const int64_t cache = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
  return std::min(std::clamp(2 * cache, kLeast, kMost), std::max(memory / 8, int64_t{1} << 24));
}

// GB/s read. Each thread walks its own share of one buffer, a chunk a burst, again and again.
double memory_gb_s(int threads, double seconds) {
  constexpr size_t kChunk = size_t{1} << 20;  // words: 8 MB, about a millisecond
  const auto bytes = static_cast<size_t>(buffer_bytes());
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, bytes, MADV_HUGEPAGE);
  const std::span<uint64_t> words(static_cast<uint64_t*>(memory), bytes / sizeof(uint64_t));
  const size_t share = words.size() / static_cast<size_t>(threads);
  std::vector<size_t> positions(static_cast<size_t>(threads), share);  // share: not yet touched
  const double words_s = rate(threads, seconds, [&](int thread) {
    const auto own = words.subspan(static_cast<size_t>(thread) * share, share);
    size_t& position = positions[static_cast<size_t>(thread)];
    if (position == share) {  // the warming burst: pages come from where the thread runs
      std::ranges::fill(own, uint64_t{1});
      position = 0;
      return 0.0;
    }
    const size_t count = std::min(kChunk, share - position);
    keep(sum_words(own.subspan(position, count)));
    position = position + 2 * count > share ? 0 : position + count;
    return static_cast<double>(count);
  });
  munmap(memory, bytes);
  return words_s * sizeof(uint64_t) * 1e-9;
}

}  // namespace

Peak measure_peak(int threads, double seconds) {
  threads = std::max(threads, 1);
  const Loop* f32 = choose(kF32);
  const Loop* const others[] = {choose(kBf16), choose(kInt8), choose(kAmxBf16), choose(kAmxInt8)};
  const auto rows = 2 + std::ranges::count_if(others, [](const Loop* l) { return l != nullptr; });
  const double each = seconds / static_cast<double>(rows);
  return {.threads = threads,
          .isa = f32->isa,
          .f32_gflops = giga(f32, threads, each),
          .bf16_gflops = giga(others[0], threads, each),
          .int8_gops = giga(others[1], threads, each),
          .memory_gb_s = memory_gb_s(threads, each),
          .amx_bf16_gflops = giga(others[2], threads, each),
          .amx_int8_gops = giga(others[3], threads, each)};
}

double f32_burst_gflops(int threads, double seconds) {
  return giga(choose(kF32), std::max(threads, 1), seconds);
}

double cache_line_round_trip_ns() {
  constexpr int kBatches = 50, kTrips = 500;
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) return 0;
  alignas(64) std::atomic<int> ball{0};
  std::vector<double> batches;
  {
    const std::jthread other([&] {
      pin_this_thread(processors[1]);
      for (int i = 0; i < kBatches * kTrips; ++i) {
        while (ball.load(std::memory_order_acquire) != 1) {
        }
        ball.store(0, std::memory_order_release);
      }
    });
    const std::jthread self([&] {
      pin_this_thread(processors[0]);
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
  }
  std::ranges::nth_element(batches, batches.begin() + kBatches / 2);
  return batches[kBatches / 2];
}

}  // namespace ferry::perf
