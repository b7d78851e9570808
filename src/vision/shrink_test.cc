#include "vision/shrink.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "vision/test_noise.h"

namespace ferry::vision {
namespace {

// tests/tools/make_shrink_cases.py
TEST(Shrink, EqualsOpenCvsInterAreaToTheBit) {
  std::ifstream file("tests/data/letterbox/shrink.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    int64_t from_width, from_height, width, height;
    std::string hash;
    fields >> from_width >> from_height >> width >> height >> hash;
    ASSERT_TRUE(fields) << line;
    const testing::Noise rgb(from_width, from_height, PixelFormat::kRgb8, 7);
    const auto small = shrink(rgb.view, width, height);
    ASSERT_TRUE(small.ok()) << small.error().message;
    std::vector<uint8_t> dense;
    for (int64_t y = 0; y < height; ++y) {
      dense.insert(dense.end(), small->row(y), small->row(y) + width * 3);
    }
    EXPECT_EQ(testing::fnv(dense), hash) << line;
    ++cases;
  }
  EXPECT_GE(cases, 15);
}

TEST(Shrink, RefusesToGrow) {
  const testing::Noise rgb(8, 8, PixelFormat::kRgb8);
  EXPECT_FALSE(shrink(rgb.view, 9, 8).ok());
  EXPECT_FALSE(shrink(rgb.view, 0, 4).ok());
  EXPECT_FALSE(shrink({}, 1, 1).ok());
}

}  // namespace
}  // namespace ferry::vision
