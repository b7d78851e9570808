// How long what stands before and after the network takes: letterbox, and head decode with NMS.
//
//   post_bench [runs] [threads]
//
// A line a task: the least and the median time in ms over the runs, twice. "cold": 64 MiB are
// written between two runs, so that pictures and maps come from memory, as after a decoder or a
// large network; "warm": the task is repeated at once. One thread is timed by its own CPU clock, so
// that a busy machine disturbs less; several by the wall clock. Each task first checks its answer.
// Heads are those of a 640 x 640 input with 80 classes, filled with noise so that as many
// candidates pass as in a street scene (0.25) or in validation (0.001, several labels).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "vision/head_decode.h"
#include "vision/letterbox.h"

namespace ferry::vision {
namespace {

uint32_t noise(uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  i = (i ^ i >> 27) * 0x94d049bb133111ebu;
  return static_cast<uint32_t>(i >> 32);
}
float unit(uint64_t i) { return static_cast<float>(noise(i) >> 8) * 0x1p-24f; }

void empty_caches() {
  static std::vector<char> other(64 << 20);
  for (size_t i = 0; i < other.size(); i += 64) ++other[i];
}

double now_ms(int threads) {
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

struct Setting {
  int runs;
  int threads;
  ThreadPool* pool;  // null for one thread
};

std::vector<double> times_of(const Setting& setting, bool cold, const std::function<void()>& task) {
  std::vector<double> ms;
  for (int i = 0; i < setting.runs; ++i) {
    if (cold) empty_caches();
    const double start = now_ms(setting.threads);
    task();
    ms.push_back(now_ms(setting.threads) - start);
  }
  std::sort(ms.begin(), ms.end());
  return ms;
}

void report(const Setting& setting, const std::string& name, const std::string& note,
            const std::function<void()>& task) {
  task();
  const std::vector<double> cold = times_of(setting, true, task);
  const std::vector<double> warm = times_of(setting, false, task);
  fmt::print("{:<58} {:8.3f} {:8.3f} {:8.3f} {:8.3f}  {}\n", name, cold.front(),
             cold[cold.size() / 2], warm.front(), warm[warm.size() / 2], note);
}

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "post_bench: {}\n", why);
  std::exit(1);
}

// --- letterbox ----------------------------------------------------------------------------------

void bench_letterbox(const char* name, int64_t width, int64_t height, LetterboxMode mode,
                     const Setting& setting) {
  std::vector<uint8_t> pixels(width * height * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(noise(i));
  const PictureView picture = {pixels.data(), width, height, width * 3, PixelFormat::kBgr8};
  const auto plan = plan_letterbox(width, height, {.mode = mode});
  if (!plan.ok()) fail(plan.error().message);
  const size_t samples = plan->input_width * plan->input_height * 3;
  std::vector<float> nhwc(samples), nchw(samples);
  std::vector<uint8_t> bytes(samples), plain(samples);
  Letterbox letterbox(*plan);
  Letterbox portable(*plan, Simd::kPortable);
  const bool ran =
      letterbox.to_bytes(picture, TensorLayout::kNhwc, bytes.data(), setting.pool).ok() &&
      portable.to_bytes(picture, TensorLayout::kNhwc, plain.data()).ok();
  if (!ran || bytes != plain) fail("letterbox: vector and plain loops differ");
  ThreadPool* pool = setting.pool;
  const std::string to =
      fmt::format("letterbox {} to {} x {}, ", name, plan->input_width, plan->input_height);
  const auto run = [&](const char* form, const std::function<void()>& task) {
    report(setting, to + form, "", task);
  };
  run("floats NHWC",
      [&] { (void)letterbox.to_float(picture, TensorLayout::kNhwc, nhwc.data(), pool).ok(); });
  run("floats NCHW",
      [&] { (void)letterbox.to_float(picture, TensorLayout::kNchw, nchw.data(), pool).ok(); });
  run("bytes NHWC",
      [&] { (void)letterbox.to_bytes(picture, TensorLayout::kNhwc, bytes.data(), pool).ok(); });
  run("tables and floats NHWC", [&] {
    Letterbox fresh(*plan);
    (void)fresh.to_float(picture, TensorLayout::kNhwc, nhwc.data(), pool).ok();
  });
}

// --- head ---------------------------------------------------------------------------------------

constexpr int64_t kClasses = 80;
constexpr int64_t kColumns = 5 + kClasses;
const std::vector<Anchor> kAnchors[] = {{{10, 13}, {16, 30}, {33, 23}},
                                        {{30, 61}, {62, 45}, {59, 119}},
                                        {{116, 90}, {156, 198}, {373, 326}}};

struct Head {
  std::vector<float> data[3];
  std::vector<HeadMap> maps;
  RawHead view() const { return {maps, kClasses}; }
};

// `share` of the cells has an objectness logit spread over [-2, 4], the others are near -10; of a
// cell's classes one in `one_in` is near 2, the others near -9.
Head make_head(float share, uint32_t one_in) {
  Head head;
  for (int i = 0; i < 3; ++i) {
    const int64_t side = 80 >> i;
    auto& data = head.data[i];
    data.resize(side * side * 3 * kColumns);
    for (size_t k = 0; k < data.size(); ++k) {
      const uint64_t seed = k * 3 + i;
      const size_t column = k % kColumns;
      const float spread = unit(seed + (uint64_t{1} << 40));
      if (column < 4) {
        data[k] = spread * 4 - 2;
      } else if (column == 4) {
        data[k] = unit(seed) < share ? spread * 6 - 2 : -10 + spread;
      } else {
        data[k] = noise(seed) % one_in == 0 ? 1 + spread * 2 : -9 + spread;
      }
    }
    head.maps.push_back(HeadMap::nhwc(data.data(), side, side, 3 * kColumns,
                                      static_cast<float>(8 << i), kAnchors[i]));
  }
  return head;
}

void bench_head(const char* name, const Head& head, const NmsOptions& options,
                const Setting& setting) {
  ThreadPool* pool = setting.pool;
  std::vector<float> rows(head.view().rows() * kColumns);
  if (!decode_rows(head.view(), rows.data(), pool).ok()) fail("decode_rows");
  const DecodedRows decoded = {rows.data(), head.view().rows(), kColumns, kColumns, RowType::kF32};
  const auto found = detect(head.view(), options, pool);
  const auto plain = detect(decoded, options, nullptr, Simd::kPortable);
  if (!found.ok() || !plain.ok() || *found != *plain) fail("detect: raw and decoded heads differ");
  const auto candidates = find_candidates(head.view(), options);
  const std::string note =
      fmt::format("{} candidates of {} cells, {} boxes", candidates->items.size(),
                  candidates->boxes.size(), found->size());
  const std::string prefix = fmt::format("{}, ", name);
  report(setting, prefix + "raw head to boxes", note,
         [&] { (void)detect(head.view(), options, pool).ok(); });
  report(setting, prefix + "  candidates alone", "",
         [&] { (void)find_candidates(head.view(), options, pool).ok(); });
  report(setting, prefix + "  suppression alone", "",
         [&] { (void)suppress(*candidates, options); });
  report(setting, prefix + "decoded rows to boxes", "",
         [&] { (void)detect(decoded, options, pool).ok(); });
}

void bench_scan(const Setting& setting) {
  ThreadPool* pool = setting.pool;
  const Head empty = make_head(0, 30);
  report(setting, "empty scene, raw head to boxes", "",
         [&] { (void)detect(empty.view(), {}, pool).ok(); });
  std::vector<float> rows(empty.view().rows() * kColumns);
  report(setting, "whole head to decoded rows", "",
         [&] { (void)decode_rows(empty.view(), rows.data(), pool).ok(); });
}

int bench(int runs, int threads) {
  ThreadPool threads_pool(threads);
  const Setting setting = {runs, threads, threads > 1 ? &threads_pool : nullptr};
  fmt::print("{} runs, {} threads, {}; ms\n{:<58} {:>8} {:>8} {:>8} {:>8}\n", runs, threads,
             simd_name(best_simd()), "", "cold min", "median", "warm min", "median");
  bench_letterbox("1920 x 1080", 1920, 1080, LetterboxMode::kRect, setting);
  bench_letterbox("1920 x 1080", 1920, 1080, LetterboxMode::kSquare, setting);
  bench_letterbox("810 x 1080", 810, 1080, LetterboxMode::kRect, setting);
  bench_letterbox("810 x 1080", 810, 1080, LetterboxMode::kSquare, setting);
  bench_letterbox("3840 x 2160", 3840, 2160, LetterboxMode::kRect, setting);
  bench_letterbox("640 x 640", 640, 640, LetterboxMode::kRect, setting);
  bench_scan(setting);
  bench_head("confidence 0.25", make_head(0.015f, 30), {}, setting);
  bench_head("0.001, several labels", make_head(0.28f, 5),
             {.conf_threshold = 0.001, .iou_threshold = 0.6, .multi_label = true}, setting);
  bench_head("0.001, several labels, agnostic", make_head(0.28f, 5),
             {.conf_threshold = 0.001,
              .iou_threshold = 0.6,
              .multi_label = true,
              .agnostic = true,
              .max_detections = 1000},
             setting);
  return 0;
}

}  // namespace
}  // namespace ferry::vision

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 50;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  return ferry::vision::bench(std::max(runs, 1), std::max(threads, 1));
}
