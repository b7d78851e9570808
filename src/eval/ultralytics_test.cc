#include "eval/ultralytics.h"

#include <gtest/gtest.h>

#include <string>

#include "eval/testing.h"

namespace ferry::eval {
namespace {

using nlohmann::json;
using vision::Detection;

constexpr double kTolerance = 1e-9;

void expect_curve(const Curve& curve, const json& want, size_t step, const std::string& what) {
  ASSERT_EQ(curve.size(), kCurvePoints) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(curve[i * step], want[i].get<double>(), kTolerance) << what << " at " << i * step;
  }
}

class UltralyticsCases : public ::testing::TestWithParam<const char*> {};

// tests/tools/make_ultralytics_cases.py: upstream's own functions.
TEST_P(UltralyticsCases, EqualYolov5) {
  const json data = eval_case(std::string("ultralytics_") + GetParam());
  UltralyticsMetric metric;
  for (const json& image : data["images"]) {
    metric.add(truths_of(image["truths"]), detections_of(image["detections"]));
  }
  const UltralyticsReport report = metric.report();
  const json& want = data["expected"];
  EXPECT_NEAR(report.precision, want["mp"].get<double>(), kTolerance);
  EXPECT_NEAR(report.recall, want["mr"].get<double>(), kTolerance);
  EXPECT_NEAR(report.map50, want["map50"].get<double>(), kTolerance);
  EXPECT_NEAR(report.map50_95, want["map"].get<double>(), kTolerance);
  EXPECT_NEAR(report.fitness, want["fitness"].get<double>(), kTolerance);
  EXPECT_NEAR(report.best_confidence, want["best"].get<double>(), kTolerance);
  ASSERT_EQ(report.classes.size(), want["ids"].size());
  const auto step = want["step"].get<size_t>();
  for (size_t c = 0; c < report.classes.size(); ++c) {
    const ClassScore& score = report.classes[c];
    const std::string name = "class " + std::to_string(score.class_id);
    EXPECT_EQ(score.class_id, want["ids"][c].get<int32_t>());
    EXPECT_NEAR(score.precision, want["p"][c].get<double>(), kTolerance) << name;
    EXPECT_NEAR(score.recall, want["r"][c].get<double>(), kTolerance) << name;
    EXPECT_NEAR(score.f1, want["f1"][c].get<double>(), kTolerance) << name;
    EXPECT_EQ(score.true_positives, static_cast<int64_t>(want["tp"][c].get<double>())) << name;
    EXPECT_EQ(score.false_positives, static_cast<int64_t>(want["fp"][c].get<double>())) << name;
    for (size_t i = 0; i < kIouCount; ++i) {
      EXPECT_NEAR(score.ap[i], want["ap"][c][i].get<double>(), kTolerance) << name << ", " << i;
    }
    const json& curves = want["curves"];
    expect_curve(score.precision_curve, curves["Precision"][c], step, name + ", precision");
    expect_curve(score.recall_curve, curves["Recall"][c], step, name + ", recall");
    expect_curve(score.f1_curve, curves["F1"][c], step, name + ", F1");
    const json& pr = curves["PR"];
    const std::string id = std::to_string(score.class_id);
    const json nothing = std::vector<double>(kCurvePoints / step, 0.0);
    expect_curve(score.pr_curve, pr.contains(id) ? pr[id] : nothing, step, name + ", PR");
  }
}

INSTANTIATE_TEST_SUITE_P(Yolov5, UltralyticsCases,
                         ::testing::Values("plain", "ties", "crowded", "sparse", "edges"));

TEST(Ultralytics, FindingNothingIsZeroEverywhere) {
  const json data = eval_case("ultralytics_nothing_found");
  UltralyticsMetric metric;
  for (const json& image : data["images"]) {
    metric.add(truths_of(image["truths"]), detections_of(image["detections"]));
  }
  const UltralyticsReport report = metric.report();
  EXPECT_EQ(report.precision, 0);
  EXPECT_EQ(report.recall, 0);
  EXPECT_EQ(report.map50, 0);
  EXPECT_EQ(report.fitness, 0);
  ASSERT_FALSE(report.classes.empty());
  EXPECT_EQ(report.classes[0].precision_curve, Curve(kCurvePoints, 0.0));
}

TEST(Ultralytics, NoPicturesAreNoClasses) {
  const UltralyticsReport report = UltralyticsMetric().report();
  EXPECT_TRUE(report.classes.empty());
  EXPECT_EQ(report.map50_95, 0);
}

// 101 points from 0 to 1; the last, at recall 1, is 0 by upstream's sentinel: 100 trapezoids, the
// last of half height.
TEST(Ultralytics, PerfectDetectionsScore995) {
  UltralyticsMetric metric;
  for (int picture = 0; picture < 3; ++picture) {
    const float at = static_cast<float>(picture) * 7;
    const Truth truths[] = {{{at, 10, at + 20, 30}, 0}, {{at, 50, at + 80, 90}, 2}};
    const Detection detections[] = {{truths[0].box, 0.9f, 0}, {truths[1].box, 0.8f, 2}};
    metric.add(truths, detections);
  }
  const UltralyticsReport report = metric.report();
  ASSERT_EQ(report.classes.size(), 2u);
  EXPECT_EQ(report.classes[1].class_id, 2);
  EXPECT_EQ(report.classes[1].truths, 3);
  EXPECT_NEAR(report.map50, 0.995, 1e-12);
  EXPECT_NEAR(report.map50_95, 0.995, 1e-12);
  EXPECT_NEAR(report.fitness, 0.995, 1e-12);
  EXPECT_EQ(report.precision, 1);
  EXPECT_EQ(report.recall, 1);
  EXPECT_EQ(report.classes[0].true_positives, 3);
  EXPECT_EQ(report.classes[0].false_positives, 0);
  EXPECT_EQ(report.best_confidence, 0);  // the whole plateau is as good: its start
}

// Of two detections of one object the more confident counts, even though the other is closer.
TEST(Ultralytics, TheMoreConfidentOfTwoTakesTheObject) {
  UltralyticsMetric metric;
  const Truth truths[] = {{{0, 0, 100, 100}, 0}};
  const Detection detections[] = {{{0, 0, 100, 60}, 0.9f, 0}, {{0, 0, 100, 100}, 0.8f, 0}};
  metric.add(truths, detections);
  const UltralyticsReport report = metric.report();
  // Its IoU is 0.6. Beyond that the exact one counts, at precision 1/2.
  EXPECT_NEAR(report.classes[0].ap[0], 0.995, 1e-12);
  EXPECT_NEAR(report.classes[0].ap[1], 0.995, 1e-12);
  EXPECT_NEAR(report.classes[0].ap[3], 0.4975, 1e-12);
}

TEST(Ultralytics, OrderOfPicturesDoesNotMatter) {
  const json data = eval_case("ultralytics_plain");
  UltralyticsMetric forward, backward;
  for (const json& image : data["images"]) {
    forward.add(truths_of(image["truths"]), detections_of(image["detections"]));
  }
  for (size_t i = data["images"].size(); i-- > 0;) {
    const json& image = data["images"][i];
    backward.add(truths_of(image["truths"]), detections_of(image["detections"]));
  }
  EXPECT_EQ(forward.report().map50_95, backward.report().map50_95);
  EXPECT_EQ(forward.report().best_confidence, backward.report().best_confidence);
}

TEST(Smoothed, IsABoxWhoseEndsRepeat) {
  // round(20 * 0.1 * 2) / 2 + 1 = 3 wide.
  Curve curve(20, 0.0);
  curve[0] = 3;
  curve[10] = 6;
  const Curve smooth = smoothed(curve, 0.1);
  EXPECT_EQ(smooth[0], 2);  // (3 + 3 + 0) / 3
  EXPECT_EQ(smooth[1], 1);
  EXPECT_EQ(smooth[9], 2);
  EXPECT_EQ(smooth[10], 2);
  EXPECT_EQ(smooth[11], 2);
  EXPECT_EQ(smooth[12], 0);
}

}  // namespace
}  // namespace ferry::eval
