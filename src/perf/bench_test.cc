// Rows of engines that are Python programs with times they make up: every number here is exact.
#include "perf/bench.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "perf/bench_report.h"
#include "perf/npy.h"
#include "perf/test_peers.h"

namespace ferry::perf {
namespace {

using Rounds = std::vector<std::vector<double>>;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Ratio, IsFormedRoundByRound) {
  // Medians 2, 4, 8 against 3, 6, 12: the machine slows down, the ratio stays.
  const Rounds ours = {{2, 1, 3}, {4, 4, 5}, {8}}, theirs = {{3}, {6, 6}, {12, 10, 14}};
  const Ratio ratio = ratio_of(ours, theirs);
  EXPECT_DOUBLE_EQ(ratio.median, 1.5);
  EXPECT_DOUBLE_EQ(ratio.low, 1.5);
  EXPECT_DOUBLE_EQ(ratio.high, 1.5);
  EXPECT_DOUBLE_EQ(ratio.of_fastest, 3);
  EXPECT_DOUBLE_EQ(ratio.sure_low, 1.5);
  EXPECT_DOUBLE_EQ(ratio.sure_high, 1.5);
}

TEST(Ratio, SaysHowFarRoundsLieApart) {
  const Rounds ours = {{1}, {1}, {1}, {1}, {1}}, theirs = {{1}, {1.1}, {1.2}, {1.3}, {1.4}};
  const Ratio ratio = ratio_of(ours, theirs);
  EXPECT_DOUBLE_EQ(ratio.median, 1.2);
  EXPECT_DOUBLE_EQ(ratio.low, 1.04);  // numpy.percentile(…, 10)
  EXPECT_DOUBLE_EQ(ratio.high, 1.36);
  EXPECT_DOUBLE_EQ(ratio.least, 1);
  EXPECT_DOUBLE_EQ(ratio.most, 1.4);
  EXPECT_GE(ratio.sure_low, 1);
  EXPECT_LT(ratio.sure_low, 1.2);
  EXPECT_GT(ratio.sure_high, 1.2);
  EXPECT_LE(ratio.sure_high, 1.4);
}

class Rows : public testing::Test {
 protected:
  Rows() {
    folder_ = testing::TempDir() + "/ferry_bench_test_XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  ~Rows() override { std::filesystem::remove_all(folder_); }

  RowOptions options() const {
    return {.duration_s = 0.004,
            .warmup_s = 0,
            .rounds = 4,
            .wait_s = 0,
            .patience = 1,
            .timeout_s = 60,
            .peak = {.threads = 1, .isa = "test", .f32_gflops = 1e6},
            .folder = folder_};
  }
  static PeerCommand named(std::string name, PeerCommand command) {
    command.name = std::move(name);
    return command;
  }
  std::string npy(const std::string& name, const NpyArray& array) const {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(write_npy(path, array).ok());
    return path;
  }

  std::string folder_;
};

TEST_F(Rows, EnginesAreComparedAndPlayedAsOftenAsAskedFor) {
  const auto row = measure_row({named("a", good_peer(0.5)), named("b", good_peer(1))}, options());
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->played, 4);
  EXPECT_EQ(row->rounds.size(), 4U);
  EXPECT_EQ(row->macs, 1000);
  ASSERT_EQ(row->engines.size(), 2U);
  const EngineResult& a = row->engines[0];
  const EngineResult& b = row->engines[1];
  EXPECT_EQ(a.latency.count, 8);  // 4 ms in 4 turns of 0.5 ms runs: two each
  EXPECT_EQ(b.latency.count, 4);
  EXPECT_EQ(a.latency.median, 0.5);
  EXPECT_DOUBLE_EQ(a.images_per_s, 2000);
  EXPECT_DOUBLE_EQ(b.ratio.median, 2);
  EXPECT_DOUBLE_EQ(a.ratio.median, 1);
  EXPECT_EQ(b.difference.boxes, 0);
  EXPECT_EQ(a.memory.peak_rss_mb, 30);
  EXPECT_NEAR(a.of_peak, 2e-6 * 1000 / row->peak.f32_gflops / 0.5, 1e-15);
}

TEST_F(Rows, IterationsAreSharedByTheRounds) {
  RowOptions asked = options();
  asked.iterations = 10;
  const auto row = measure_row({good_peer(0.5)}, asked);
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->engines[0].latency.count, 12);  // three in each of four rounds
}

TEST_F(Rows, AnEngineThatComputesSomethingElseIsNotTimed) {
  const auto row = measure_row(
      {named("a", good_peer(1)), named("off", good_peer(1, "[[[10, 20, 3.1, 4, 0.5, 0.25]]]")),
       named("short", good_peer(1, "[[[10, 20, 3, 4, 0.5]]]")),
       named("close", good_peer(1, "[[[10.01, 20, 3, 4, 0.5, 0.25]]]"))},
      options());
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_PRED2(holds, row->engines[1].refused, "off: computes something else than a");
  EXPECT_EQ(row->engines[1].latency.count, 0);
  EXPECT_PRED2(holds, row->engines[2].refused, "its output is [1, 1, 5], where [1, 1, 6] is meant");
  EXPECT_EQ(row->engines[3].refused, "");
  EXPECT_GT(row->engines[3].latency.count, 0);
}

TEST_F(Rows, OneThatDiesWhileItIsTimedIsLeftOut) {
  PeerCommand mortal = good_peer(1);
  std::string& program = mortal.words.back();
  program.replace(program.find("for line"), 0, "asked = [0]\n");
  program.replace(program.find("    answer = {}"), 0,
                  "    asked[0] += 1\n    if asked[0] > 9: sys.exit(5)\n");
  const auto row = measure_row(
      {named("a", good_peer(1)), named("mortal", mortal), named("c", good_peer(3))}, options());
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_PRED2(holds, row->engines[1].refused, "mortal: ended with exit code 5");
  EXPECT_TRUE(row->engines[1].rounds_ms.empty());
  EXPECT_DOUBLE_EQ(row->engines[2].ratio.median, 3);
}

TEST_F(Rows, WithoutTheFirstEngineThereIsNoRow) {
  const auto row =
      measure_row({named("a", python_peer("sys.exit(1)")), named("b", good_peer(1))}, options());
  ASSERT_FALSE(row.ok());
  EXPECT_PRED2(holds, row.error().message, "a: ended with exit code 1");
}

TEST_F(Rows, InterruptedIsAnError) {
  RowOptions asked = options();
  asked.cancelled = [] { return true; };
  const auto row = measure_row({good_peer(1)}, asked);
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.error().code, Code::kCancelled);
}

TEST_F(Rows, ReportsHoldEveryEngine) {
  BenchRun run;
  run.version = "1.2.3";
  run.date = "2026-01-01T00:00:00Z";
  run.machine.cpu = "a \"fast\" one, or so";
  auto row = measure_row({named("a", good_peer(1)), named("b,c", good_peer(2)),
                          named("dead", python_peer("sys.exit(1)"))},
                         options());
  ASSERT_TRUE(row.ok()) << row.error().message;
  run.rows.push_back({.model = "tiny",
                      .description = "",
                      .height = 64,
                      .width = 96,
                      .work = "network",
                      .result = *std::move(row)});
  for (const std::string& text : {row_text(run.rows[0]), table_text(run.rows), markdown(run)}) {
    EXPECT_PRED2(holds, text, "tiny");
    EXPECT_PRED2(holds, text, "b,c");
    EXPECT_PRED2(holds, text, "dead: ended with exit code 1");
  }
  EXPECT_PRED2(holds, table_text(run.rows), "2.00 (2.00-2.00)");
  EXPECT_PRED2(holds, csv(run), "\ntiny,network,64,96,1,1,1,\"b,c\",1.5,4,500.0000,2.0000,");
  const auto json = nlohmann::json::parse(json_text(run), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["machine"]["cpu"], run.machine.cpu);
  EXPECT_EQ(json["rows"][0]["engines"][1]["ratio"]["median"], 2.0);
  EXPECT_EQ(json["rows"][0]["engines"][1]["rounds_ms"].size(), 4U);
  EXPECT_TRUE(json["rows"][0]["engines"][2].contains("refused"));
  const std::string line = record_line(run, run.rows[0]);
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  const auto record = nlohmann::json::parse(line, nullptr, false);
  ASSERT_TRUE(record.is_object());
  EXPECT_EQ(record["row"]["threads"], 1);
  EXPECT_FALSE(record["row"]["engines"][0].contains("rounds_ms"));
}

TEST_F(Rows, DifferencesOfScoresAreRelativeAndOfBoxesPixels) {
  const std::string a = npy("a.npy", {{1, 1, 6}, {10, 20, 3, 4, 0.5F, 0.25F}});
  const std::string b = npy("b.npy", {{1, 1, 6}, {10.5F, 20, 3, 4, 0.5F, 0.26F}});
  const auto difference = difference_of(b, a);
  ASSERT_TRUE(difference.ok());
  EXPECT_DOUBLE_EQ(difference->boxes, 0.5);
  EXPECT_NEAR(difference->scores, 0.04, 1e-5);
  const std::string nan = npy("nan.npy", {{1, 1, 6}, {10, 20, 3, 4, NAN, 0.25F}});
  EXPECT_FALSE(difference_of(nan, a).ok());
}

RowResult quiet_row() {
  RowResult row;
  row.peak.f32_gflops = 100;
  row.rounds.assign(4, Round{.disturbance = {}, .burst_gflops = 99, .round_trip_ns = 0});
  EngineResult& engine = row.engines.emplace_back();
  engine.name = "ferry";
  engine.rounds_ms = {{10}, {10.1}, {10}, {10.1}};
  return row;
}

TEST(Doubts, AQuietMachineHasNone) { EXPECT_TRUE(doubts(quiet_row()).empty()); }

TEST(Doubts, ComeWithTheirEvidence) {
  RowResult row = quiet_row();
  for (Round& round : row.rounds) round.disturbance.others_cores = 0.5;
  row.rounds[1].disturbance.others_cores = 0.75;
  row.rounds[2].disturbance.steal_percent = 3;
  row.rounds[3].burst_gflops = 60;
  row.engines[0].rounds_ms = {{10}, {10}, {20}, {20}};
  const std::vector<std::string> said = doubts(row);
  ASSERT_EQ(said.size(), 4U);
  EXPECT_PRED2(holds, said[0], "0.50 processors meanwhile (0.75 at most)");
  EXPECT_PRED2(holds, said[1], "3.0 %");
  EXPECT_PRED2(holds, said[2], "between 60 and 99 %");
  EXPECT_PRED2(holds, said[3], "67 % apart");
}

TEST(Doubts, ARatioWhoseSpreadHoldsOneShowsNothing) {
  RowResult row = quiet_row();
  EngineResult other = row.engines[0];
  other.name = "ferry again";
  other.ratio = {.median = 1.001,
                 .low = 0.99,
                 .high = 1.01,
                 .least = 0.98,
                 .most = 1.02,
                 .of_fastest = 1,
                 .sure_low = 0.99,
                 .sure_high = 1.01};
  row.engines.push_back(other);
  ASSERT_EQ(doubts(row).size(), 1U);
  EXPECT_PRED2(holds, doubts(row)[0], "No difference is shown between ferry and ferry again");
}

}  // namespace
}  // namespace ferry::perf
