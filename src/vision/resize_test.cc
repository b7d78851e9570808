#include "vision/resize.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "vision/test_noise.h"

namespace ferry::vision {
namespace {

// tests/tools/make_resize_cases.py
TEST(Resize, EqualsOpenCvToTheBit) {
  std::ifstream file("tests/data/letterbox/resize.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string how, hash;
    int64_t from_width, from_height, width, height;
    fields >> how >> from_width >> from_height >> width >> height >> hash;
    ASSERT_TRUE(fields) << line;
    const testing::Noise rgb(from_width, from_height, PixelFormat::kRgb8, 7);
    const auto result =
        how == "area" ? shrink(rgb.view, width, height) : resize_linear(rgb.view, width, height);
    ASSERT_TRUE(result.ok()) << result.error().message;
    std::vector<uint8_t> dense;
    for (int64_t y = 0; y < height; ++y) {
      dense.insert(dense.end(), result->row(y), result->row(y) + width * 3);
    }
    EXPECT_EQ(testing::fnv(dense), hash) << line;
    ++cases;
  }
  EXPECT_GE(cases, 18);
}

TEST(Resize, RefusesSidesItCannotMake) {
  const testing::Noise rgb(8, 8, PixelFormat::kRgb8);
  EXPECT_FALSE(shrink(rgb.view, 9, 8).ok());
  EXPECT_FALSE(shrink(rgb.view, 0, 4).ok());
  EXPECT_FALSE(shrink({}, 1, 1).ok());
  EXPECT_FALSE(resize_linear(rgb.view, 0, 4).ok());
}

}  // namespace
}  // namespace ferry::vision
