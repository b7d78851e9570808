#include "eval/confusion.h"

#include <gtest/gtest.h>

#include <string>

#include "eval/testing.h"

namespace ferry::eval {
namespace {

using nlohmann::json;
using vision::Detection;

class ConfusionCases : public ::testing::TestWithParam<const char*> {};

TEST_P(ConfusionCases, EqualYolov5) {
  const json data = eval_case(std::string("ultralytics_") + GetParam());
  const auto classes = data["classes"].get<int64_t>();
  ConfusionMatrix matrix(classes);
  for (const json& image : data["images"]) {
    matrix.add(truths_of(image["truths"]), detections_of(image["detections"]));
  }
  const json& want = data["expected"]["confusion"];
  for (int64_t p = 0; p <= classes; ++p) {
    for (int64_t t = 0; t <= classes; ++t) {
      EXPECT_EQ(matrix.at(p, t),
                want[static_cast<size_t>(p)][static_cast<size_t>(t)].get<int64_t>())
          << "predicted " << p << ", true " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Yolov5, ConfusionCases,
                         ::testing::Values("plain", "ties", "crowded", "sparse", "nothing_found",
                                           "edges"));

TEST(Confusion, CountsHitsMixUpsMissesAndGhosts) {
  ConfusionMatrix matrix(2);
  const Truth truths[] = {{{0, 0, 10, 10}, 0}, {{20, 0, 30, 10}, 0}, {{40, 0, 50, 10}, 1}};
  const Detection detections[] = {{{0, 0, 10, 10}, 0.9f, 0},     // right
                                  {{20, 0, 30, 10}, 0.8f, 1},    // taken for the other class
                                  {{60, 0, 70, 10}, 0.7f, 1},    // nothing there
                                  {{40, 0, 50, 10}, 0.25f, 1}};  // not above the threshold
  matrix.add(truths, detections);
  EXPECT_EQ(matrix.at(0, 0), 1);
  EXPECT_EQ(matrix.at(1, 0), 1);
  EXPECT_EQ(matrix.at(1, 2), 1);
  EXPECT_EQ(matrix.at(2, 1), 1);
  EXPECT_EQ(matrix.true_positives(0), 1);
  EXPECT_EQ(matrix.false_positives(0), 0);
  EXPECT_EQ(matrix.true_positives(1), 0);
  EXPECT_EQ(matrix.false_positives(1), 2);
}

TEST(Confusion, TheCloserOfTwoTakesTheObject) {
  ConfusionMatrix matrix(2);
  const Truth truths[] = {{{0, 0, 100, 100}, 0}};
  const Detection detections[] = {{{0, 0, 100, 60}, 0.9f, 0}, {{0, 0, 100, 100}, 0.5f, 1}};
  matrix.add(truths, detections);
  EXPECT_EQ(matrix.at(1, 0), 1);
  EXPECT_EQ(matrix.at(0, 2), 1);
}

TEST(Confusion, CountsGhostsOfPicturesWithoutObjects) {
  ConfusionMatrix matrix(1);
  const Detection ghost[] = {{{0, 0, 5, 5}, 0.6f, 0}};
  matrix.add({}, ghost);
  EXPECT_EQ(matrix.at(0, 1), 1);
}

}  // namespace
}  // namespace ferry::eval
