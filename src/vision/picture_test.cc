#include "vision/picture.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace ferry::vision {
namespace {

TEST(Picture, RowsAreAlignedAndMayBeReadPastTheirEnd) {
  auto made = Picture::create(5, 3);
  ASSERT_TRUE(made.ok());
  Picture picture = *std::move(made);
  EXPECT_EQ(picture.stride(), 64);  // 15 bytes, rounded up
  EXPECT_EQ(reinterpret_cast<uintptr_t>(picture.data()) % 64, 0u);
  std::memset(picture.data(), 7, static_cast<size_t>(picture.stride() * 3 + 64));  // ASan watches
}

TEST(Picture, SidesOutsideTheLimitsAreRefused) {
  EXPECT_EQ(Picture::create(0, 5).error().code, Code::kInvalid);
  EXPECT_EQ(Picture::create(5, -1).error().code, Code::kInvalid);
  EXPECT_EQ(Picture::create(kMaxPictureSide + 1, 1).error().code, Code::kInvalid);
  EXPECT_EQ(Picture::create(kMaxPictureSide, kMaxPictureSide).error().code, Code::kNoMemory);
}

TEST(Picture, MovedFromIsEmpty) {
  Picture first = *Picture::create(4, 4);
  Picture second = std::move(first);
  EXPECT_TRUE(first.empty());  // NOLINT: the point of the test
  EXPECT_EQ(first.width(), 0);
  EXPECT_EQ(second.width(), 4);
}

TEST(Picture, CopyOfAViewKeepsPixelsAndFormat) {
  const std::vector<uint8_t> pixels = {1, 2, 3, 4, 5, 6, 99, 7, 8, 9, 10, 11, 12, 99};
  auto copy = Picture::copy_of({pixels.data(), 2, 2, 7, PixelFormat::kRgb8});
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->format(), PixelFormat::kRgb8);
  EXPECT_EQ(copy->row(1)[0], 7);
  EXPECT_EQ(copy->row(1)[5], 12);
}

TEST(Picture, AViewWhoseStrideCannotHoldARowIsRefused) {
  const std::vector<uint8_t> pixels(12);
  EXPECT_FALSE(check_view({pixels.data(), 2, 2, 5, PixelFormat::kBgr8}).ok());
  EXPECT_FALSE(check_view({nullptr, 2, 2, 6, PixelFormat::kBgr8}).ok());
  EXPECT_TRUE(check_view({pixels.data(), 2, 2, 6, PixelFormat::kBgr8}).ok());
}

}  // namespace
}  // namespace ferry::vision
