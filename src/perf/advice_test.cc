// Every rule on two sets of made-up facts: one that it must speak about, and one as near to it as
// makes sense about which it must not. A table, so that a rule without cases fails.
#include "perf/advice.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace ferry::perf {
namespace {

// A detector in order, on a quiet machine: no rule has anything to say.
Evidence good() {
  return {.picture_ms = 20,
          .decode = 0.1,
          .letterbox = 0.05,
          .network = 0.8,
          .head = 0.02,
          .nms = 0.01,
          .draw = 0.02,
          .boxes = 40,
          .source_pixels = 2000000,
          .input_pixels = 400000,
          .threads = 2,
          .cores = 2,
          .layers = {{.node = "model.0",
                      .op = "conv2d",
                      .kernel = "igemm avx512",
                      .ms = 10,
                      .share = 0.6,
                      .of_roof = 0.5,
                      .bound = Bound::kCompute},
                     {.node = "model.1",
                      .op = "conv2d",
                      .kernel = "winograd4 avx512",
                      .ms = 6,
                      .share = 0.4,
                      .of_roof = 0.5,
                      .bound = Bound::kCompute}},
          .network_of_roof = 0.5,
          .runs = 100,
          .median_ms = 16,
          .p90_ms = 16.3,
          .p99_ms = 17,
          .max_ms = 18,
          .others_rest = 0.02,
          .switches_rest = 0.1,
          .burst_low = 98,
          .burst_high = 100,
          .governor = "performance",
          .processors = "0,1"};
}

struct Case {
  const char* rule;
  std::function<void(Evidence&)> speaks, is_silent;
  std::vector<const char*> says;  // in finding, bound or remedy
};

// Latency that varies, with nobody to blame.
void vary(Evidence& e) {
  e.p99_ms = 24;
  e.max_ms = 30;
  e.slow_runs = 9;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {.rule = "decode",
       .speaks = [](Evidence& e) { e.decode = 0.61, e.network = 0.3; },
       .is_silent = [](Evidence& e) { e.decode = 0.24, e.network = 0.6; },
       .says = {"61 %", "30 %", "2.0 megapixels", "0.4"}},
      {.rule = "preprocess",
       .speaks = [](Evidence& e) { e.letterbox = 0.2; },
       .is_silent = [](Evidence& e) { e.letterbox = 0.14; },
       .says = {"20 %", "20.0 ms"}},
      {.rule = "postprocess",
       .speaks = [](Evidence& e) { e.nms = 0.3, e.head = 0.02, e.boxes = 20000; },
       .is_silent = [](Evidence& e) { e.nms = 0.12, e.head = 0.02, e.boxes = 20000; },
       .says = {"30 %", "20000 candidates", "--conf-thres"}},
      {.rule = "postprocess",  // what NMS finds in a made-up picture says nothing
       .speaks = [](Evidence& e) { e.head = 0.2, e.raw_heads = false, e.made_up = true; },
       .is_silent = [](Evidence& e) { e.nms = 0.2, e.made_up = true; },
       .says = {"20 %", "--raw-heads"}},
      {.rule = "draw",
       .speaks = [](Evidence& e) { e.draw = 0.3; },
       .is_silent = [](Evidence& e) { e.draw = 0.3, e.made_up = true; },
       .says = {"30 %", "--nosave"}},
      {.rule = "slow-path",
       .speaks = [](Evidence& e) { e.layers[1].why_slow = "it reads f16, the fast kernels f32"; },
       .is_silent =
           [](Evidence& e) {
             e.layers[1].why_slow = "it reads f16, the fast kernels f32";
             e.layers[1].share = 0.005;
           },
       .says = {"40 %", "model.1 (conv2d) 6.00 ms", "it reads f16", "a layer"}},
      {.rule = "copies",
       .speaks = [](Evidence& e) { e.layers[1].op = "transpose", e.layers[1].copy_share = 0.1; },
       .is_silent = [](Evidence& e) { e.layers[1].copy_share = 0.07; },
       .says = {"10 %", "model.1 (transpose)"}},
      {.rule = "threads",
       .speaks =
           [](Evidence& e) {
             e.layers[1].ms = 0.04, e.layers[1].of_roof = 0.2, e.layers[1].share = 0.2;
           },
       .is_silent =
           [](Evidence& e) {  // as short, but near its roof
             e.layers[1].ms = 0.04, e.layers[1].of_roof = 0.5, e.layers[1].share = 0.2;
           },
       .says = {"1 of 2 layers", "50 µs", "2 threads", "--streams 2"}},
      {.rule = "threads",  // one thread waits for none
       .speaks = [](Evidence& e) { e.layers[1].ms = 0.01, e.layers[1].of_roof = 0.1; },
       .is_silent =
           [](Evidence& e) { e.layers[1].ms = 0.01, e.layers[1].of_roof = 0.1, e.threads = 1; },
       .says = {"40 %"}},
      {.rule = "memory-bound",
       .speaks = [](Evidence& e) { e.layers[1].bound = Bound::kMemory, e.layers[1].of_roof = 0.9; },
       .is_silent =
           [](Evidence& e) { e.layers[1].bound = Bound::kMemory, e.layers[1].of_roof = 0.3; },
       .says = {"40 %", "model.1 (conv2d) 6.00 ms at 90 % of the roof"}},
      {.rule = "far-from-roof",
       .speaks = [](Evidence& e) { e.layers[0].of_roof = 0.25; },
       .is_silent = [](Evidence& e) { e.layers[0].of_roof = 0.25, e.others_rest = 1; },
       .says = {"60 %", "model.0 (conv2d) 10.00 ms at 25 % by igemm avx512", "--tune"}},
      {.rule = "compute-bound",
       .speaks = [](Evidence& e) { e.network_of_roof = 0.7; },
       .is_silent = [](Evidence& e) { e.network_of_roof = 0.7, e.network = 0.5; },
       .says = {"80 %", "70 %", "--imgsz"}},
      {.rule = "oversubscribed",
       .speaks = [](Evidence& e) { e.threads = 4; },
       .is_silent = [](Evidence& e) { e.threads = 2; },
       .says = {"4 threads share 2 processors (0,1)", "--threads 2"}},
      {.rule = "noisy-neighbour",
       .speaks = [](Evidence& e) { vary(e), e.others_slow = 0.6; },
       .is_silent = [](Evidence& e) { e.others_slow = 0.6; },  // seen, but it did no harm
       .says = {"16.00 ms in the median", "24.00 at the 99th", "9 of 100", "0.60 processors",
                "taskset -c 0,1"}},
      {.rule = "noisy-neighbour",
       .speaks = [](Evidence& e) { vary(e), e.steal_percent = 4; },
       .is_silent = [](Evidence& e) { vary(e), e.steal_percent = 0.5; },
       .says = {"4.0 % of the time was stolen", "only the host"}},
      {.rule = "noisy-neighbour",
       .speaks = [](Evidence& e) { vary(e), e.switches_slow = 5; },
       .is_silent = [](Evidence& e) { vary(e), e.switches_slow = 0.9; },
       .says = {"lost its own 5.0 times a run"}},
      {.rule = "frequency",
       .speaks = [](Evidence& e) { vary(e), e.burst_low = 70, e.governor = "powersave"; },
       .is_silent = [](Evidence& e) { vary(e), e.burst_low = 70, e.others_slow = 0.6; },
       .says = {"70 to 100 GFLOP/s", "'powersave'", "cpupower frequency-set -g performance",
                "taskset -c 0,1"}},
      {.rule = "frequency",
       .speaks =
           [](Evidence& e) {
             vary(e), e.burst_low = 70, e.governor = "", e.virtualisation = "kvm";
           },
       .is_silent = [](Evidence& e) { e.burst_low = 70; },  // runs do not vary
       .says = {"Under kvm the host sets the frequency"}},
      {.rule = "jitter",
       .speaks = [](Evidence& e) { vary(e); },
       .is_silent = [](Evidence& e) { vary(e), e.burst_low = 70; },
       .says = {"9 of 100", "98 to 100 GFLOP/s", "taskset -c 0,1"}},
      {.rule = "jitter",  // too few runs, or too short ones, to tell
       .speaks = [](Evidence& e) { e.median_ms = 1, e.p99_ms = 2; },
       .is_silent = [](Evidence& e) { e.median_ms = 0.1, e.p99_ms = 0.4; },
       .says = {}},
      {.rule = "jitter",
       .speaks = [](Evidence& e) { vary(e), e.runs = 20; },
       .is_silent = [](Evidence& e) { vary(e), e.runs = 19; },
       .says = {}},
      {.rule = "busy",
       .speaks = [](Evidence& e) { e.others_rest = 0.8; },
       .is_silent = [](Evidence& e) { e.others_rest = 0.2; },
       .says = {"0.8 of the processors"}},
      {.rule = "memory-grows",
       .speaks =
           [](Evidence& e) {
             e.growth_bytes = 5e6, e.growth_per_run = 5e4, e.grows_steadily = true;
           },
       .is_silent = [](Evidence& e) { e.growth_bytes = 5e6, e.growth_per_run = 5e4; },  // one jump
       .says = {"5.0 MB", "50.0 kB a run"}},
      {.rule = "memory-grows",
       .speaks = [](Evidence& e) { e.growth_bytes = 2e6, e.grows_steadily = true; },
       .is_silent = [](Evidence& e) { e.growth_bytes = 1e6, e.grows_steadily = true; },
       .says = {}},
  };
  return all;
}

const Advice* find(const std::vector<Advice>& advice, std::string_view rule) {
  for (const Advice& a : advice) {
    if (a.rule == rule) return &a;
  }
  return nullptr;
}

TEST(Advice, NothingIsSaidOfADetectorInOrder) {
  for (const Advice& advice : advise(good())) ADD_FAILURE() << advice.rule << advice.finding;
}

TEST(Advice, EveryRuleSpeaksOfItsCaseAndNotOfItsOpposite) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.rule);
    Evidence evidence = good();
    c.speaks(evidence);
    const std::vector<Advice> found = advise(evidence);
    const Advice* advice = find(found, c.rule);
    ASSERT_NE(advice, nullptr);
    EXPECT_FALSE(advice->bound.empty());
    EXPECT_FALSE(advice->finding.empty());
    EXPECT_FALSE(advice->remedy.empty());
    EXPECT_GT(advice->weight, 0);
    EXPECT_LE(advice->weight, 1);
    const std::string text = advice->bound + "\n" + advice->finding + "\n" + advice->remedy;
    for (const char* words : c.says) {
      EXPECT_NE(text.find(words), std::string::npos) << words << " is not in: " << text;
    }
    Evidence opposite = good();
    c.is_silent(opposite);
    EXPECT_EQ(find(advise(opposite), c.rule), nullptr);
  }
}

TEST(Advice, EveryRuleHasCasesAndASummary) {
  std::set<std::string_view> tested, names;
  for (const Case& c : cases()) tested.insert(c.rule);
  for (const AdviceRule& rule : advice_rules()) {
    EXPECT_TRUE(tested.contains(rule.name)) << rule.name;
    EXPECT_FALSE(rule.summary.empty()) << rule.name;
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " twice";
  }
}

TEST(Advice, TheWeightiestComesFirst) {
  Evidence evidence = good();
  evidence.decode = 0.5;
  evidence.letterbox = 0.3;
  evidence.network = 0.1;
  const std::vector<Advice> found = advise(evidence);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].rule, "decode");
  EXPECT_EQ(found[1].rule, "preprocess");
}

TEST(Advice, LatencyThatVariesHasOneCause) {
  for (const double others : {0.0, 0.6}) {
    for (const double burst_low : {98.0, 70.0}) {
      Evidence evidence = good();
      vary(evidence);
      evidence.others_slow = others;
      evidence.burst_low = burst_low;
      EXPECT_EQ(advise(evidence).size(), 1U) << others << " " << burst_low;
    }
  }
}

TEST(Advice, OnlyTheHeaviestLayersAreNamed) {
  Evidence evidence = good();
  evidence.layers.clear();
  for (int i = 0; i < 5; ++i) {
    evidence.layers.push_back({.node = "n" + std::to_string(i),
                               .op = "softmax",
                               .kernel = "reference",
                               .why_slow = "of that",
                               .ms = 1.0 + i,
                               .share = 0.1 * (i + 1)});
  }
  const std::vector<Advice> found = advise(evidence);
  const Advice* advice = find(found, "slow-path");
  ASSERT_NE(advice, nullptr);
  EXPECT_NE(advice->finding.find("n4 (softmax) 5.00 ms, since of that; n3"), std::string::npos);
  EXPECT_NE(advice->finding.find("; and 2 more"), std::string::npos);
  EXPECT_EQ(advice->finding.find("n0"), std::string::npos);
}

}  // namespace
}  // namespace ferry::perf
