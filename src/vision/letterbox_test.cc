#include "vision/letterbox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "vision/letterbox_kernels.h"
#include "vision/test_noise.h"

namespace ferry::vision {
namespace {

using testing::fnv;
using testing::Noise;

LetterboxMode mode_from(const std::string& name) {
  if (name == "rect") return LetterboxMode::kRect;
  return name == "square" ? LetterboxMode::kSquare : LetterboxMode::kStretch;
}

LetterboxPlan plan_or_die(int64_t width, int64_t height, const LetterboxOptions& options = {}) {
  auto plan = plan_letterbox(width, height, options);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? *plan : LetterboxPlan{};
}

int64_t input_samples(const LetterboxPlan& plan) {
  return plan.input_width * plan.input_height * 3;
}

std::vector<uint8_t> bytes_of(Letterbox& letterbox, const PictureView& picture, TensorLayout layout,
                              ThreadPool* pool = nullptr) {
  std::vector<uint8_t> out(input_samples(letterbox.plan()));
  const Status status = letterbox.to_bytes(picture, layout, out.data(), pool);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return out;
}

TEST(Letterbox, EqualsOpenCvToTheBitOnEveryInstructionSet) {
  std::ifstream file("tests/data/letterbox/cases.txt");
  ASSERT_TRUE(file) << "tests/data/letterbox/cases.txt is missing: run from the repository's root";
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string mode, hash;
    int64_t width, height;
    LetterboxOptions options;
    LetterboxPlan want;
    fields >> mode >> width >> height >> options.width >> options.height >> options.scale_up >>
        want.input_width >> want.input_height >> want.pad_left >> want.pad_top >>
        want.scaled_width >> want.scaled_height >> hash;
    ASSERT_TRUE(fields) << line;
    options.mode = mode_from(mode);
    const LetterboxPlan plan = plan_or_die(width, height, options);
    ASSERT_EQ(plan.input_width, want.input_width) << line;
    ASSERT_EQ(plan.input_height, want.input_height) << line;
    EXPECT_EQ(plan.pad_left, want.pad_left) << line;
    EXPECT_EQ(plan.pad_top, want.pad_top) << line;
    EXPECT_EQ(plan.scaled_width, want.scaled_width) << line;
    EXPECT_EQ(plan.scaled_height, want.scaled_height) << line;

    const Noise rgb(width, height, PixelFormat::kRgb8);
    const Noise bgr(width, height, PixelFormat::kBgr8, 5);
    for (Simd simd : supported_simd()) {
      Letterbox letterbox(plan, simd);
      EXPECT_EQ(fnv(bytes_of(letterbox, rgb.view, TensorLayout::kNhwc)), hash)
          << line << ", RGB, " << simd_name(simd);
      EXPECT_EQ(fnv(bytes_of(letterbox, bgr.view, TensorLayout::kNhwc)), hash)
          << line << ", BGR, " << simd_name(simd);
    }
    ++cases;
  }
  EXPECT_GE(cases, 30);
}

// The other three forms of the output are the first one rearranged and divided.
TEST(Letterbox, WritesPlanesAndFloatsOfTheSamePixels) {
  for (auto [width, height] : {std::pair{97, 61}, {640, 352}, {5, 3}, {1920, 270}}) {
    for (LetterboxMode mode : {LetterboxMode::kRect, LetterboxMode::kSquare}) {
      const LetterboxPlan plan = plan_or_die(width, height, {.mode = mode});
      const Noise bgr(width, height, PixelFormat::kBgr8);
      for (Simd simd : supported_simd()) {
        Letterbox letterbox(plan, simd);
        const auto bytes = bytes_of(letterbox, bgr.view, TensorLayout::kNhwc);
        const auto planes = bytes_of(letterbox, bgr.view, TensorLayout::kNchw);
        std::vector<float> nhwc(bytes.size()), nchw(bytes.size());
        ASSERT_TRUE(letterbox.to_float(bgr.view, TensorLayout::kNhwc, nhwc.data()).ok());
        ASSERT_TRUE(letterbox.to_float(bgr.view, TensorLayout::kNchw, nchw.data()).ok());
        const int64_t pixels = plan.input_width * plan.input_height;
        int64_t wrong = 0;
        for (int64_t p = 0; p < pixels; ++p) {
          for (int64_t c = 0; c < 3; ++c) {
            const uint8_t byte = bytes[p * 3 + c];
            const float unit = static_cast<float>(byte) / 255.0f;
            wrong += planes[c * pixels + p] != byte || nhwc[p * 3 + c] != unit ||
                     nchw[c * pixels + p] != unit;
          }
        }
        EXPECT_EQ(wrong, 0) << width << " x " << height << ", " << simd_name(simd);
      }
    }
  }
}

TEST(Letterbox, DividesEveryByteBy255AsADivisionDoes) {
  std::vector<uint8_t> bytes(256 + 13);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  for (Simd simd : supported_simd()) {
    std::vector<float> units(bytes.size() + 1, -1);
    row_kernels(simd).to_float(bytes.data(), static_cast<int64_t>(bytes.size()), units.data());
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(units[i], static_cast<float>(bytes[i]) / 255.0f) << i << simd_name(simd);
    }
    EXPECT_EQ(units.back(), -1) << "wrote past the row: " << simd_name(simd);
  }
}

// Every width from 1 up meets every tail of the vector loops; the plain loops are the judge, which
// the OpenCV cases above have judged.
TEST(Letterbox, VectorLoopsAgreeWithPlainOnesForEveryWidth) {
  for (int64_t width = 1; width <= 80; ++width) {
    for (int64_t aim : {31, 32, 64, 160}) {
      const LetterboxPlan plan =
          plan_or_die(width, 9, {.width = aim, .height = 40, .mode = LetterboxMode::kStretch});
      const Noise bgr(width, 9, PixelFormat::kBgr8, 1);
      Letterbox plain(plan, Simd::kPortable);
      const auto want = bytes_of(plain, bgr.view, TensorLayout::kNhwc);
      for (Simd simd : supported_simd()) {
        Letterbox letterbox(plan, simd);
        EXPECT_EQ(bytes_of(letterbox, bgr.view, TensorLayout::kNhwc), want)
            << width << " to " << aim << ", " << simd_name(simd);
      }
    }
  }
}

TEST(Letterbox, GivesTheSameBytesWithAnyNumberOfThreads) {
  const Noise bgr(333, 777, PixelFormat::kBgr8);
  Letterbox letterbox(plan_or_die(333, 777));
  const auto want = bytes_of(letterbox, bgr.view, TensorLayout::kNhwc);
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(bytes_of(letterbox, bgr.view, TensorLayout::kNhwc, &pool), want) << threads;
  }
}

TEST(Letterbox, ServesBothColourOrdersAndSecondCallsOfOneObject) {
  const Noise rgb(200, 150, PixelFormat::kRgb8);
  const Noise bgr(200, 150, PixelFormat::kBgr8);
  Letterbox letterbox(plan_or_die(200, 150));
  const auto first = bytes_of(letterbox, rgb.view, TensorLayout::kNhwc);
  EXPECT_EQ(bytes_of(letterbox, bgr.view, TensorLayout::kNhwc), first);
  EXPECT_EQ(bytes_of(letterbox, rgb.view, TensorLayout::kNhwc), first);
}

TEST(Letterbox, RefusesAPictureOfAnotherSize) {
  Letterbox letterbox(plan_or_die(200, 150));
  const Noise other(150, 200, PixelFormat::kRgb8);
  std::vector<float> out(input_samples(letterbox.plan()));
  const Status status = letterbox.to_float(other.view, TensorLayout::kNhwc, out.data());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kInvalid);
  EXPECT_NE(status.error().message.find("150 x 200"), std::string::npos) << status.error().message;
}

// 1080 x 810 in 640: 640 x 480 needs no border. 1280 x 720: 360 rows, 24 to the next multiple of
// 32, so 12 above and 12 below. 500 x 375 to 640 x 384: ratio 1.024, 512 wide, 64 left and right.
TEST(LetterboxPlan, FollowsTheArithmeticOfUpstream) {
  LetterboxPlan plan = plan_or_die(1280, 720);
  EXPECT_EQ(plan.ratio_x, 0.5);
  EXPECT_EQ(plan.input_height, 384);
  EXPECT_EQ(plan.pad_top, 12);
  plan = plan_or_die(500, 375, {.width = 640, .height = 384, .mode = LetterboxMode::kSquare});
  EXPECT_EQ(plan.scaled_width, 512);
  EXPECT_EQ(plan.pad_left, 64);
  EXPECT_EQ(plan.input_width, 640);
  plan = plan_or_die(100, 75, {.mode = LetterboxMode::kSquare, .scale_up = false});
  EXPECT_EQ(plan.scaled_width, 100);
  EXPECT_EQ(plan.pad_left, 270);
  EXPECT_EQ(plan.pad_top, 282);  // 565 rows of border: 282 above, 283 below
}

TEST(LetterboxPlan, KeepsOnePixelOfAPictureTooThinToScale) {
  const LetterboxPlan plan = plan_or_die(1, 4000);
  EXPECT_EQ(plan.scaled_width, 1);
  EXPECT_EQ(plan.scaled_height, 640);
  EXPECT_EQ(plan.input_width, 32);
  const Noise thin(1, 4000, PixelFormat::kBgr8);
  Letterbox letterbox(plan);
  EXPECT_EQ(bytes_of(letterbox, thin.view, TensorLayout::kNhwc).size(), 32u * 640 * 3);
}

TEST(LetterboxPlan, RefusesSidesThatAreNotThere) {
  EXPECT_FALSE(plan_letterbox(0, 10, {}).ok());
  EXPECT_FALSE(plan_letterbox(10, -1, {}).ok());
  EXPECT_FALSE(plan_letterbox(int64_t{1} << 40, 10, {}).ok());
  EXPECT_FALSE(plan_letterbox(10, 10, {.width = 0}).ok());
  EXPECT_FALSE(plan_letterbox(10, 10, {.stride = 0}).ok());
}

TEST(InputSize, IsRoundedUpToTheStrideWithAWarning) {
  auto size = check_input_size(640, 384, 32);
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size->height, 640);
  EXPECT_EQ(size->width, 384);
  EXPECT_EQ(size->warning, "");
  size = check_input_size(641, 1, 64);
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size->height, 704);
  EXPECT_EQ(size->width, 64);
  EXPECT_NE(size->warning.find("[641, 1]"), std::string::npos);
  EXPECT_NE(size->warning.find("[704, 64]"), std::string::npos);
  EXPECT_FALSE(check_input_size(0, 640, 32).ok());
  EXPECT_FALSE(check_input_size(640, 640, 0).ok());
}

}  // namespace
}  // namespace ferry::vision
