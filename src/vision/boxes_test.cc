#include "vision/boxes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ferry::vision {
namespace {

LetterboxPlan plan_or_die(int64_t width, int64_t height, const LetterboxOptions& options) {
  auto plan = plan_letterbox(width, height, options);
  EXPECT_TRUE(plan.ok());
  return plan.ok() ? *plan : LetterboxPlan{};
}

Box scaled(const LetterboxPlan& plan, Box box) {
  Detection detection = {box, 0.5f, 3};
  scale_boxes(box_scale(plan), {&detection, 1});
  EXPECT_EQ(detection.confidence, 0.5f);
  EXPECT_EQ(detection.class_id, 3);
  return detection.box;
}

// 1280 x 720 in 640 x 384: gain one half, 12 rows above.
TEST(Boxes, GoBackToThePictureByPadAndGain) {
  const LetterboxPlan plan = plan_or_die(1280, 720, {});
  EXPECT_EQ(scaled(plan, {100, 112, 200, 312}), (Box{200, 200, 400, 600}));
}

TEST(Boxes, AreCutToThePicture) {
  const LetterboxPlan plan = plan_or_die(1280, 720, {});
  EXPECT_EQ(scaled(plan, {-5, 0, 700, 390}), (Box{0, 0, 1280, 720}));
}

// 641 wide at 640: upstream takes the border from the sizes, not from the rounded one of the
// letterbox: 643 x 0.995334 = 640, 641 x 0.995334 = 638.0093..., so (640 - 638.0093) / 2 = 0.9953.
TEST(Boxes, UseUpstreamsUnroundedBorder) {
  const LetterboxPlan plan = plan_or_die(641, 643, {.mode = LetterboxMode::kSquare});
  const BoxScale scale = box_scale(plan);
  EXPECT_DOUBLE_EQ(scale.gain_x, 640.0 / 643);
  EXPECT_NEAR(scale.pad_x, (640 - 641.0 * 640 / 643) / 2, 1e-12);
  EXPECT_NEAR(scale.pad_y, 0, 1e-12);
}

TEST(Boxes, OfAStretchedPictureHaveAGainForEachSide) {
  const LetterboxPlan plan = plan_or_die(320, 1280, {.mode = LetterboxMode::kStretch});
  EXPECT_EQ(scaled(plan, {20, 30, 40, 50}), (Box{10, 60, 20, 100}));
}

TEST(Boxes, OfNanStayNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Box box = scaled(plan_or_die(1280, 720, {}), {nan, 112, 200, 312});
  EXPECT_TRUE(std::isnan(box.x1));
  EXPECT_FALSE(is_finite(box));
  EXPECT_FALSE(is_finite({0, 0, std::numeric_limits<float>::infinity(), 1}));
  EXPECT_TRUE(is_finite({0, 0, 1, 1}));
}

TEST(Boxes, IntersectOverTheirUnion) {
  EXPECT_EQ(intersection_over_union({0, 0, 10, 10}, {5, 0, 15, 10}), 50.0f / 150.0f);
  EXPECT_EQ(intersection_over_union({0, 0, 10, 10}, {10, 0, 20, 10}), 0);
  EXPECT_EQ(intersection_over_union({0, 0, 10, 10}, {20, 20, 30, 30}), 0);
  EXPECT_EQ(intersection_over_union({0, 0, 10, 10}, {0, 0, 10, 10}), 1);
  EXPECT_TRUE(std::isnan(intersection_over_union({3, 3, 3, 3}, {3, 3, 3, 3})));
  EXPECT_EQ(box_from_center(10, 20, 4, 6), (Box{8, 17, 12, 23}));
}

}  // namespace
}  // namespace ferry::vision
