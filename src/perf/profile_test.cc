// The arithmetic of a profile on numbers that can be checked by hand, its reports, and pictures
// from files. What a run takes, nothing here asks.
#include "perf/profile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/op_def.h"
#include "perf/profile_report.h"
#include "perf/profile_run.h"
#include "perf/profile_source.h"

namespace ferry::perf {
namespace {

using nlohmann::json;
using runtime::StepInfo;

// 100 GFLOP/s and 10 GB/s: 10 operations a byte is where the roofs meet.
Peak peak() { return {.threads = 2, .isa = "avx512", .f32_gflops = 100, .memory_gb_s = 10}; }

StepInfo work(int64_t macs, int64_t bytes, int64_t layout_bytes = 0) {
  return {.node = "n",
          .op = "conv2d",
          .kernel = "igemm",
          .macs = macs,
          .bytes = bytes,
          .layout_bytes = layout_bytes};
}

TEST(Roof, IsArithmeticOrMemoryWhicheverTakesLonger) {
  // 1e9 operations at 100 GFLOP/s: 10 ms. 20 MB at 10 GB/s: 2 ms.
  const Roof compute = roof_of(work(500'000'000, 20'000'000), peak());
  EXPECT_DOUBLE_EQ(compute.ms, 10);
  EXPECT_EQ(compute.bound, Bound::kCompute);
  // 2e7 operations: 0.2 ms.
  const Roof memory = roof_of(work(10'000'000, 20'000'000), peak());
  EXPECT_DOUBLE_EQ(memory.ms, 2);
  EXPECT_EQ(memory.bound, Bound::kMemory);
  // What is copied to change layouts moves, too.
  const Roof relaid = roof_of(work(0, 20'000'000, 10'000'000), peak());
  EXPECT_DOUBLE_EQ(relaid.ms, 3);
}

TEST(Roof, IsThatOfTheStepsOwnArithmetic) {
  Peak p = peak();
  p.int8_gops = 400;
  StepInfo step = work(500'000'000, 1000);
  EXPECT_DOUBLE_EQ(roof_of(step, p).ms, 10);
  step.dtype = graph::DType::kI8;
  EXPECT_DOUBLE_EQ(roof_of(step, p).ms, 2.5);
  EXPECT_EQ(roof_of(step, peak()).ms, 0);  // not measured
}

TEST(Roof, IsUnknownWithoutAPeakAndForNothing) {
  EXPECT_EQ(roof_of(work(1000, 1000), {}).bound, Bound::kUnknown);
  EXPECT_EQ(roof_of(work(0, 0), peak()).bound, Bound::kUnknown);
}

// Three steps: two convolutions of 20 and 5 ms, and a transpose of 5.
std::vector<StepProfile> three_steps() {
  const std::vector<StepInfo> steps = {
      {.node = "a", .op = "conv2d", .kernel = "igemm", .macs = 500'000'000, .bytes = 20'000'000},
      {.node = "b", .op = "conv2d", .kernel = "winograd4", .macs = 400'000'000, .bytes = 1'000'000},
      {.node = "c", .op = "transpose", .kernel = "reference", .bytes = 10'000'000}};
  const std::vector<std::vector<double>> times = {{22, 20, 19}, {5, 4, 9}, {5, 5, 5}};
  return step_profiles(steps, times, peak());
}

TEST(Steps, HaveMediansSharesAndRates) {
  const std::vector<StepProfile> steps = three_steps();
  EXPECT_DOUBLE_EQ(steps[0].median_ms, 20);
  EXPECT_DOUBLE_EQ(steps[0].min_ms, 19);
  EXPECT_DOUBLE_EQ(steps[0].share, 20.0 / 30);
  EXPECT_DOUBLE_EQ(steps[0].gflops, 50);  // 1e9 in 20 ms
  EXPECT_DOUBLE_EQ(steps[0].gb_s, 1);     // 20 MB in 20 ms
  EXPECT_DOUBLE_EQ(steps[0].of_roof, 0.5);
  EXPECT_DOUBLE_EQ(steps[1].of_roof, 1.6);  // 8 ms at peak in 5: Winograd may
  EXPECT_DOUBLE_EQ(steps[0].share + steps[1].share + steps[2].share, 1);
}

TEST(Steps, OnlyMovingDataIsACopy) {
  const std::vector<StepProfile> steps = three_steps();
  EXPECT_EQ(steps[0].copy_share, 0);
  EXPECT_DOUBLE_EQ(steps[2].copy_share, 5.0 / 30);
  // 10 of 30 MB are copied around the loops: at memory's speed 1 ms of 4, a quarter; by its part
  // of the bytes it would be a third.
  const std::vector<StepInfo> one = {work(0, 20'000'000, 10'000'000)};
  const std::vector<std::vector<double>> times = {{4}};
  EXPECT_DOUBLE_EQ(step_profiles(one, times, peak())[0].copy_share, 0.25);
}

TEST(Steps, AreSummedByOpAndByKernel) {
  const std::vector<StepProfile> ops = by_op(three_steps());
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_EQ(ops[0].info.op, "conv2d");
  EXPECT_EQ(ops[0].count, 2);
  EXPECT_DOUBLE_EQ(ops[0].median_ms, 25);
  EXPECT_DOUBLE_EQ(ops[0].gflops, 72);          // 1.8e9 in 25 ms
  EXPECT_DOUBLE_EQ(ops[0].of_roof, 18.0 / 25);  // 10 and 8 ms at best
  EXPECT_EQ(ops[0].roof.bound, Bound::kCompute);
  EXPECT_EQ(ops[1].count, 1);
  EXPECT_EQ(ops[1].roof.bound, Bound::kMemory);
  const std::vector<StepProfile> kernels = by_kernel(three_steps());
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[0].info.kernel, "igemm");
  double share = 0;
  for (const StepProfile& row : kernels) share += row.share;
  EXPECT_DOUBLE_EQ(share, 1);
}

TEST(Steps, MeansOfTheFasterHalfAddUpWhereMediansDoNot) {
  // Each run is disturbed by 10 ms in one of two steps: medians of the steps do not know.
  const std::vector<std::vector<double>> times = {{1, 11, 1, 11}, {11, 1, 11, 1}};
  const std::vector<double> plain = {12, 12.5, 12, 30};
  const CalmHalf calm = calm_half(times, plain);
  EXPECT_DOUBLE_EQ(calm.steps_ms, 12);
  EXPECT_DOUBLE_EQ(calm.plain_ms, 12);
  EXPECT_DOUBLE_EQ(calm.difference, 0);
  EXPECT_EQ(calm_half({}, plain).steps_ms, 0);
}

CpuClock clock(double wall_s, double idle_s, double own_s, double steal_s, int64_t switches) {
  return {.total_s = 2 * wall_s,  // two processors
          .idle_s = idle_s,
          .steal_s = steal_s,
          .own_s = own_s,
          .wall_s = wall_s,
          .involuntary_switches = switches};
}

TEST(JitterOf, SetsTheSlowRunsAgainstTheRest) {
  const CpuClock begin = clock(0, 0, 0, 0, 0);
  // Of a second on two processors: this process 1 s, nobody else.
  const NetworkRun calm{10, begin, clock(1, 1, 1, 0, 1)};
  // Others 0.5 s, and 0.1 s stolen.
  const NetworkRun slow{20, begin, clock(1, 0.4, 1, 0.1, 7)};
  const std::vector<NetworkRun> runs = {calm, calm, slow, calm};
  const std::vector<double> bursts = {90, 100, 95};
  const Jitter jitter = jitter_of(runs, bursts);
  EXPECT_DOUBLE_EQ(jitter.slow_limit_ms, 11);
  EXPECT_EQ(jitter.slow, 1);
  EXPECT_NEAR(jitter.others_slow, 0.5, 1e-9);
  EXPECT_NEAR(jitter.others_rest, 0, 1e-9);
  EXPECT_DOUBLE_EQ(jitter.switches_slow, 7);
  EXPECT_DOUBLE_EQ(jitter.switches_rest, 1);
  EXPECT_NEAR(jitter.steal_percent, 100 * 0.1 / 8, 1e-9);
  EXPECT_DOUBLE_EQ(jitter.burst_low, 90);
  EXPECT_DOUBLE_EQ(jitter.burst_high, 100);
  EXPECT_EQ(jitter_of({}, {}).slow, 0);
}

TEST(TrendOf, AStraightLineIsFound) {
  std::vector<int64_t> resident;
  for (int64_t i = 0; i < 40; ++i) resident.push_back(1'000'000 + 100 * i);
  const MemoryTrend trend = trend_of(resident);
  EXPECT_EQ(trend.first, 1'000'000);
  EXPECT_EQ(trend.last, 1'003'900);
  EXPECT_NEAR(trend.bytes_per_run, 100, 1e-6);
  EXPECT_NEAR(trend.growth_bytes, 2900, 1e-4);  // over 30 runs
  EXPECT_TRUE(trend.steady);
}

TEST(TrendOf, BuffersThatAreMadeOnceAreNoGrowth) {
  std::vector<int64_t> resident(40, 5'000'000);
  for (size_t i = 0; i < 8; ++i) resident[i] = 1'000'000;
  const MemoryTrend trend = trend_of(resident);
  EXPECT_NEAR(trend.bytes_per_run, 0, 1e-6);
  EXPECT_FALSE(trend.steady);
  EXPECT_EQ(trend_of({}).last, 0);
  EXPECT_FALSE(trend_of(std::vector<int64_t>{1, 2, 3}).steady);
}

// x -> conv2d -> split, a view -> softmax, of f32 and of f16 and of three dimensions.
TEST(DescribeSteps, SkipsViewsAndConstantsAndSaysWhyThereIsNoKernel) {
  static const graph::OpDef conv{.name = "conv2d"}, split{.name = "split"},
      softmax{.name = "softmax"};
  const auto value = [](const char* name, graph::DType dtype, graph::Shape shape) {
    return graph::Value{.name = name, .type = {dtype, std::move(shape)}};
  };
  using enum graph::DType;
  graph::Graph graph;
  graph.values = {value("x", kF32, {1, 4, 8, 8}), value("weight", kF32, {6, 4, 1, 1}),
                  value("c", kF32, {1, 6, 8, 8}), value("half", kF32, {1, 3, 8, 8}),
                  value("s", kF32, {1, 3, 8, 8}), value("f16", kF16, {1, 3, 8, 8}),
                  value("flat", kF32, {3, 8, 8})};
  graph.inputs = {0, 5, 6};
  graph.nodes = {{.op = &conv, .name = "a", .inputs = {0, 1, graph::kNone}, .outputs = {2}},
                 {.op = &split, .name = "a", .inputs = {2}, .outputs = {3}},
                 {.op = &softmax, .name = "b", .inputs = {3}, .outputs = {4}},
                 {.op = &softmax, .name = "b", .inputs = {5}, .outputs = {4}},
                 {.op = &softmax, .name = "b", .inputs = {6}, .outputs = {4}}};
  std::vector<StepProfile> steps(4);
  steps[0].info = {.node = "a", .op = "conv2d", .kernel = "igemm"};
  for (size_t i = 1; i < 4; ++i)
    steps[i].info = {.node = "b", .op = "softmax", .kernel = "reference"};
  describe_steps(steps, graph);
  EXPECT_EQ(steps[0].shapes, "1x4x8x8 -> 1x6x8x8");
  EXPECT_EQ(steps[0].why_slow, "");
  EXPECT_EQ(steps[1].why_slow, "no fast kernel takes this softmax");
  EXPECT_EQ(steps[2].why_slow, "it reads f16, the fast kernels f32");
  EXPECT_EQ(steps[3].shapes, "3x8x8 -> 1x3x8x8");
  EXPECT_NE(steps[3].why_slow.find("3 dimensions"), std::string::npos);
}

// --- reports ---

Profile small_profile() {
  Profile p;
  p.version = "1.2.3";
  p.model = "tiny.pt";
  p.description = "YOLOv5 tiny";
  p.peak = peak();
  p.width = p.height = 64;
  p.source = "bus.jpg";
  p.stages[0].ms = {.count = 2, .median = 1};
  p.steps = three_steps();
  p.steps[2].why_slow = "no fast kernel takes this transpose";
  p.steps[0].shapes = "1x3x64x64 -> 1x8x32x32";
  p.steps_ms = 30;
  p.macs = 900'000'000;
  p.plain_ms = {.count = 3, .min = 28, .median = 30};
  p.advice = {{.rule = "decode", .bound = "input: decoding", .finding = "F.", .remedy = "R."}};
  return p;
}

size_t lines_with(const std::string& text, std::string_view words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++count;
  return count;
}

TEST(ProfileText, ShowsTheHeaviestAndSumsTheRest) {
  const std::string text = profile_text(small_profile(), {.top = 1});
  EXPECT_NE(text.find("1x3x64x64 -> 1x8x32x32"), std::string::npos) << text;
  EXPECT_NE(text.find("2 more; --all"), std::string::npos) << text;
  EXPECT_EQ(lines_with(text, "winograd4"), 0U) << text;
  EXPECT_NE(text.find("input: decoding [decode]"), std::string::npos) << text;
  EXPECT_EQ(text.find("do not add up"), std::string::npos) << text;
}

TEST(ProfileText, SaysWhenMediansDoNotAddUp) {
  Profile p = small_profile();
  p.difference = -0.12;
  EXPECT_NE(profile_text(p, {}).find("do not add up"), std::string::npos);
}

TEST(ProfileText, OrderIsThatOfExecution) {
  const std::string text = profile_text(small_profile(), {.top = 0, .sort = SortBy::kOrder});
  EXPECT_LT(text.find("winograd4"), text.find("transpose"));
  EXPECT_EQ(text.find("more; --all"), std::string::npos);
}

TEST(ProfileText, WithoutAPeakThereAreNoRoofs) {
  Profile p = small_profile();
  p.peak = {};
  EXPECT_EQ(profile_text(p, {}).find("roof"), std::string::npos);
  EXPECT_FALSE(json::parse(profile_json(p))["machine"].contains("peak"));
}

TEST(ProfileJson, HoldsWhatTheTextSays) {
  const json j = json::parse(profile_json(small_profile()));
  ASSERT_EQ(j["nodes"].size(), 3U);
  EXPECT_EQ(j["nodes"][0]["node"], "a");
  EXPECT_EQ(j["nodes"][0]["bound"], "compute");
  EXPECT_EQ(j["nodes"][0]["precision"], "f32");
  EXPECT_EQ(j["nodes"][2]["why_slow"], "no fast kernel takes this transpose");
  EXPECT_EQ(j["by_op"][0]["count"], 2);
  EXPECT_EQ(j["network"]["nodes_ms"], 30.0);
  EXPECT_EQ(j["advice"][0]["rule"], "decode");
}

TEST(ProfileCsv, HasALineForEachNode) {
  Profile p = small_profile();
  p.steps[0].info.node = "a, \"b\"";
  const std::string csv = profile_csv(p);
  EXPECT_EQ(lines_with(csv, "\n"), 4U);
  EXPECT_NE(csv.find("\"a, \"\"b\"\"\""), std::string::npos) << csv;
}

// --- pictures ---

TEST(ProfileSource, AMadeUpPictureIsTheSameEveryTime) {
  auto source = ProfileSource::made_up(40, 30);
  ASSERT_TRUE(source.ok());
  EXPECT_TRUE(source->is_made_up());
  vision::Picture a, b;
  ASSERT_TRUE(source->next(a).ok());
  ASSERT_TRUE(source->next(b).ok());
  std::memset(a.data(), 0, 40);
  ASSERT_TRUE(source->next(a).ok());
  for (int64_t y = 0; y < 30; ++y) EXPECT_EQ(std::memcmp(a.row(y), b.row(y), 40 * 3), 0);
}

TEST(ProfileSource, RefusesLiveStreamsAndWhatIsNotThere) {
  const auto live = ProfileSource::open("rtsp://camera/1");
  ASSERT_FALSE(live.ok());
  EXPECT_NE(live.error().message.find("recording"), std::string::npos);
  EXPECT_FALSE(ProfileSource::open("/no/such/picture.jpg").ok());
}

TEST(ProfileSource, FilesThatCannotBeDecodedAreLeftOutThenItFails) {
  const std::string path = ::testing::TempDir() + "profile_broken.jpg";
  std::ofstream(path) << "this is no picture";
  auto source = ProfileSource::open(path);
  ASSERT_TRUE(source.ok());
  vision::Picture picture;
  EXPECT_FALSE(source->next(picture).ok());
  EXPECT_EQ(source->warnings().size(), 1U);
  EXPECT_FALSE(source->next(picture).ok());  // and goes on failing
  std::filesystem::remove(path);
}

// --- a whole one ---

TEST(MeasureProfile, ATinyModelFromEndToEnd) {
  const auto profile = measure_profile({.weights = "tests/data/checkpoints/tiny.pt",
                                        .threads = 1,
                                        .height = 64,
                                        .width = 64,
                                        .runs = 3,
                                        .warmup = 1,
                                        .peak_seconds = 0,
                                        .trace_runs = 2});
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->plain_ms.count, 3);
  EXPECT_EQ(profile->timed_ms.count, 3);
  EXPECT_GT(profile->steps.size(), 3U);
  EXPECT_FALSE(profile->stages[0].measured);
  double sum = 0, share = 0;
  for (const StepProfile& step : profile->steps) {
    sum += step.median_ms;
    share += step.share;
    EXPECT_NE(step.shapes.find(" -> "), std::string::npos) << step.info.node;
  }
  EXPECT_NEAR(sum, profile->steps_ms, 1e-9);
  EXPECT_NEAR(share, 1, 1e-9);
}

// Nodes lie in the network, stages in their run, and no two of a kind overlap.
TEST(MeasureProfile, SpansOfTheTraceNest) {
  const auto profile = measure_profile({.weights = "tests/data/checkpoints/tiny.pt",
                                        .threads = 1,
                                        .height = 64,
                                        .width = 64,
                                        .runs = 4,
                                        .peak_seconds = 0,
                                        .trace_runs = 2});
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  const Span *run = nullptr, *stage = nullptr, *network = nullptr, *node = nullptr;
  size_t nodes = 0;
  const auto end = [](const Span& s) { return s.start_ns + s.duration_ns; };
  for (const Span& span : profile->trace.spans) {
    EXPECT_GE(span.duration_ns, 0);
    if (span.category == "run") {
      EXPECT_TRUE(run == nullptr || span.start_ns >= end(*run));
      run = &span;
      stage = nullptr;
      continue;
    }
    ASSERT_NE(run, nullptr);
    EXPECT_GE(span.start_ns, run->start_ns);
    EXPECT_LE(end(span), end(*run));
    if (span.category == "stage") {
      EXPECT_TRUE(stage == nullptr || span.start_ns >= end(*stage));
      stage = &span;
      node = nullptr;
      if (span.name == "network") network = &span;
      continue;
    }
    ++nodes;
    EXPECT_GE(span.start_ns, network->start_ns);
    EXPECT_LE(end(span), end(*network));
    EXPECT_TRUE(node == nullptr || span.start_ns == end(*node));
    node = &span;
  }
  EXPECT_EQ(nodes, 2 * profile->steps.size());
}

TEST(MeasureProfile, StopsWhenAskedTo) {
  const auto profile = measure_profile({.weights = "tests/data/checkpoints/tiny.pt",
                                        .height = 64,
                                        .width = 64,
                                        .runs = 1000,
                                        .peak_seconds = 0,
                                        .cancelled = [] { return true; }});
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().code, Code::kCancelled);
}

TEST(MeasureProfile, RefusesWhatCannotBe) {
  EXPECT_FALSE(measure_profile({.weights = "tests/data/checkpoints/tiny.pt", .batch = 0}).ok());
  EXPECT_FALSE(measure_profile({.weights = "no_such_file.pt"}).ok());
}

}  // namespace
}  // namespace ferry::perf
