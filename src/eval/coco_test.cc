#include "eval/coco.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "eval/testing.h"

namespace ferry::eval {
namespace {

using nlohmann::json;

class CocoCases : public ::testing::TestWithParam<const char*> {};

// tests/tools/make_eval_cases.py
TEST_P(CocoCases, TwelveNumbersAndClassesEqualPycocotools) {
  const json data = eval_case(std::string("coco_") + GetParam());
  CocoMetric metric(data["classes"].get<int64_t>());
  for (const json& image : data["images"]) {
    std::vector<CocoTruth> truths;
    for (const json& t : image["truths"]) {
      truths.push_back({.box = {t[1], t[2], t[3], t[4]},
                        .class_id = t[0],
                        .area = t[5],
                        .crowd = t[6].get<int>() != 0});
    }
    std::vector<CocoDetection> detections;
    for (const json& d : image["detections"]) {
      detections.push_back({.box = {d[1], d[2], d[3], d[4]}, .class_id = d[0], .score = d[5]});
    }
    metric.add(image["id"], truths, detections);
  }
  const CocoReport report = metric.report();
  const json& want = data["expected"];
  const std::pair<const char*, double> got[] = {
      {"AP", report.ap},        {"AP50", report.ap50},     {"AP75", report.ap75},
      {"APs", report.ap_small}, {"APm", report.ap_medium}, {"APl", report.ap_large},
      {"AR1", report.ar1},      {"AR10", report.ar10},     {"AR100", report.ar100},
      {"ARs", report.ar_small}, {"ARm", report.ar_medium}, {"ARl", report.ar_large}};
  for (const auto& [name, value] : got) EXPECT_NEAR(value, want[name].get<double>(), 1e-9) << name;
  ASSERT_EQ(report.class_ap.size(), want["class_ap"].size());
  for (size_t c = 0; c < report.class_ap.size(); ++c) {
    EXPECT_NEAR(report.class_ap[c], want["class_ap"][c].get<double>(), 1e-9) << "class " << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Pycocotools, CocoCases,
                         ::testing::Values("plain", "crowd", "ties", "many", "empty_classes", "odd",
                                           "edges"));

TEST(Coco, PerfectDetectionsScoreOne) {
  CocoMetric metric(2);
  for (int64_t image = 0; image < 3; ++image) {
    const CocoTruth truths[] = {{.box = {0, 0, 10, 10}, .class_id = 0, .area = 100},
                                {.box = {50, 0, 50, 50}, .class_id = 1, .area = 2500},
                                {.box = {0, 60, 200, 200}, .class_id = 1, .area = 40000}};
    const CocoDetection detections[] = {
        {truths[0].box, 0, 0.9}, {truths[1].box, 1, 0.8}, {truths[2].box, 1, 0.7}};
    metric.add(image, truths, detections);
  }
  const CocoReport report = metric.report();
  EXPECT_NEAR(report.ap, 1, 1e-12);
  EXPECT_NEAR(report.ap_small, 1, 1e-12);
  EXPECT_NEAR(report.ap_medium, 1, 1e-12);
  EXPECT_NEAR(report.ap_large, 1, 1e-12);
  EXPECT_NEAR(report.ar1, 0.75, 1e-12);  // class 0 whole, of class 1 one of two a picture
  EXPECT_NEAR(report.ar10, 1, 1e-12);
  EXPECT_EQ(report.class_ap.size(), 2u);
}

// Two objects; right, wrong, right. Precision is 1 up to recall 0.5 (51 points), then 2/3 (50).
TEST(Coco, PrecisionIsReadAt101PointsOfRecall) {
  CocoMetric metric(1);
  const CocoTruth truths[] = {{.box = {0, 0, 10, 10}, .area = 100},
                              {.box = {20, 0, 10, 10}, .area = 100}};
  const CocoDetection detections[] = {
      {{0, 0, 10, 10}, 0, 0.9}, {{40, 0, 10, 10}, 0, 0.8}, {{20, 0, 10, 10}, 0, 0.7}};
  metric.add(1, truths, detections);
  EXPECT_NEAR(metric.report().ap50, (51 + 50 * 2.0 / 3) / 101, 1e-12);
}

TEST(Coco, CrowdsTakeAnyNumberAndCountForNothing) {
  CocoMetric metric(1);
  const CocoTruth truths[] = {{.box = {0, 0, 100, 100}, .area = 10000, .crowd = true},
                              {.box = {200, 0, 10, 10}, .area = 100}};
  const CocoDetection detections[] = {
      {{0, 0, 10, 10}, 0, 0.9}, {{50, 50, 10, 10}, 0, 0.8}, {{200, 0, 10, 10}, 0, 0.7}};
  metric.add(1, truths, detections);
  EXPECT_NEAR(metric.report().ap, 1, 1e-12);
}

TEST(Coco, OrderOfPicturesDoesNotMatter) {
  const auto report = [](bool backward) {
    CocoMetric metric(1);
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t id = backward ? 3 - i : i;
      // Equal scores: the pictures' ids decide.
      const CocoTruth truth[] = {{.box = {0, 0, 10, 10}, .area = 100}};
      const CocoDetection found[] = {{{id % 2 == 0 ? 0.0 : 500.0, 0, 10, 10}, 0, 0.5}};
      metric.add(id, truth, found);
    }
    return metric.report().ap;
  };
  EXPECT_EQ(report(false), report(true));
  EXPECT_GT(report(false), 0.1);
}

TEST(Coco, ClassesThatAreNotEvaluatedDoNotCount) {
  CocoMetric metric(1);
  const CocoTruth truths[] = {{.box = {0, 0, 10, 10}, .area = 100},
                              {.box = {0, 0, 10, 10}, .class_id = 7, .area = 100}};
  const CocoDetection detections[] = {
      {{0, 0, 10, 10}, 0, 0.5}, {{0, 0, 10, 10}, -1, 0.9}, {{0, 0, 10, 10}, 1, 0.9}};
  metric.add(1, truths, detections);
  EXPECT_NEAR(metric.report().ap, 1, 1e-12);
}

TEST(Coco, WithoutObjectsThereIsNothingToSay) {
  const CocoReport report = CocoMetric(2).report();
  EXPECT_EQ(report.ap, -1);
  EXPECT_EQ(report.ar100, -1);
  EXPECT_EQ(report.class_ap, std::vector<double>({-1, -1}));
}

}  // namespace
}  // namespace ferry::eval
