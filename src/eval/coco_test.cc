#include "eval/coco.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace ferry::eval {
namespace {

using nlohmann::json;

class CocoCases : public ::testing::TestWithParam<const char*> {};

// tests/tools/make_eval_cases.py
TEST_P(CocoCases, TwelveNumbersAndClassesEqualPycocotools) {
  const std::string path = std::string("tests/data/eval/coco_") + GetParam() + ".json";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing: run from the repository's root";
  const json data = json::parse(file);
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

TEST(Coco, WithoutObjectsThereIsNothingToSay) {
  const CocoReport report = CocoMetric(2).report();
  EXPECT_EQ(report.ap, -1);
  EXPECT_EQ(report.ar100, -1);
  EXPECT_EQ(report.class_ap, std::vector<double>({-1, -1}));
}

}  // namespace
}  // namespace ferry::eval
