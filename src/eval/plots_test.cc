#include "eval/plots.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "eval/testing.h"
#include "vision/draw.h"

namespace ferry::eval {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Evaluated {
  UltralyticsReport report;
  ConfusionMatrix matrix{1};
};

Evaluated evaluated(const std::string& name) {
  const json data = eval_case(name);
  Evaluated result;
  result.matrix = ConfusionMatrix(data["classes"].get<int64_t>());
  UltralyticsMetric metric;
  for (const json& image : data["images"]) {
    const auto truths = truths_of(image["truths"]);
    const auto detections = detections_of(image["detections"]);
    metric.add(truths, detections);
    result.matrix.add(truths, detections);
  }
  result.report = metric.report();
  return result;
}

class Plots : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }
  const fs::path folder_ =
      fs::temp_directory_path() / ("ferry_plots_test_" + std::to_string(getpid()));
};

TEST_F(Plots, AreTheFiveThatUsersKnow) {
  const Evaluated e = evaluated("ultralytics_plain");
  const std::vector<std::string> names = {"person", "安全帽", "Перчатка", "a\nb", ""};
  const Status status = write_plots(folder_, e.report, e.matrix, names);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(files(), (std::set<std::string>{"PR_curve.png", "P_curve.png", "R_curve.png",
                                            "F1_curve.png", "confusion_matrix.png"}));
}

TEST_F(Plots, HaveNoCurvesWhenNothingWasFound) {
  const Evaluated e = evaluated("ultralytics_nothing_found");
  const Status status = write_plots(folder_, e.report, e.matrix, {});
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(files(), std::set<std::string>{"confusion_matrix.png"});
}

TEST_F(Plots, SayWhereTheyCannotBeWritten) {
  const Evaluated e = evaluated("ultralytics_plain");
  const Status status = write_plots(folder_ / "missing", e.report, e.matrix, {});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("missing/PR_curve.png"), std::string::npos)
      << status.error().message;
}

int64_t count(const vision::Picture& picture, vision::Color color) {
  int64_t found = 0;
  for (int64_t y = 0; y < picture.height(); ++y) {
    for (int64_t x = 0; x < picture.width(); ++x) {
      const uint8_t* p = picture.view().at(x, y);
      found += p[0] == color.blue && p[1] == color.green && p[2] == color.red;
    }
  }
  return found;
}

// As many classes as asked for, each found once.
UltralyticsReport report_of(int32_t classes) {
  UltralyticsMetric metric;
  for (int32_t id = 0; id < classes; ++id) {
    const Truth truth[] = {{{0, 0, 9, 9}, id}};
    const vision::Detection found[] = {{{0, 0, 9, 9}, 0.5f, id}};
    metric.add(truth, found);
  }
  return metric.report();
}

TEST(PrCurve, ColoursUpToTwentyClassesAndGraysMore) {
  const auto twenty = draw_pr_curve(report_of(20), {}), more = draw_pr_curve(report_of(21), {});
  ASSERT_TRUE(twenty.ok() && more.ok());
  EXPECT_GT(count(*twenty, vision::class_color(7)), 50);  // in the legend at least
  EXPECT_EQ(count(*more, vision::class_color(7)), 0);
  EXPECT_GT(count(*more, {0, 0, 255}), 1000);  // the mean
}

TEST(Confusion, PlotLeavesWhatNeverHappensWhite) {
  constexpr vision::Color kDeepest = {8, 46, 108};
  ConfusionMatrix matrix(3);
  const auto nothing = draw_confusion(matrix, {});
  ASSERT_TRUE(nothing.ok());
  const int64_t bar_only = count(*nothing, kDeepest);
  const Truth truth[] = {{{0, 0, 9, 9}, 1}};
  const vision::Detection found[] = {{{0, 0, 9, 9}, 0.5f, 1}};
  matrix.add(truth, found);
  const auto one = draw_confusion(matrix, {});
  ASSERT_TRUE(one.ok());
  EXPECT_GT(count(*one, kDeepest), bar_only + 100000);  // one cell of sixteen
  EXPECT_LT(count(*one, kDeepest), bar_only + 300000);
}

}  // namespace
}  // namespace ferry::eval
