#include "vision/encode.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

#include "vision/test_files.h"

namespace ferry::vision {
namespace {

// A picture with an edge, a ramp and three different channels.
Picture sample(int64_t width, int64_t height, PixelFormat format = PixelFormat::kBgr8) {
  Picture picture = *Picture::create(width, height, format);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      uint8_t* pixel = picture.row(y) + x * 3;
      pixel[0] = static_cast<uint8_t>(x * 255 / width);
      pixel[1] = static_cast<uint8_t>(y * 255 / height);
      pixel[2] = x < width / 2 ? 40 : 200;
    }
  return picture;
}

Picture round_trip(const PictureView& picture, PictureFormat format, int quality = 95) {
  const auto file = encode_picture(picture, format, {.quality = quality});
  EXPECT_TRUE(file.ok()) << file.error().message;
  auto decoded = decode_picture(*file);
  EXPECT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->format, format);
  EXPECT_EQ(decoded->warning, "");
  return std::move(decoded->picture);
}

int worst_difference(const PictureView& a, const PictureView& b) {
  int worst = 0;
  for (int64_t y = 0; y < a.height; ++y)
    for (int64_t i = 0; i < a.width * 3; ++i)
      worst = std::max(worst, std::abs(a.row(y)[i] - b.row(y)[i]));
  return worst;
}

TEST(Encode, LosslessFormatsGiveBackEveryPixel) {
  for (const int64_t width : {1, 2, 3, 37}) {
    const Picture picture = sample(width, 11);
    for (const PictureFormat format :
         {PictureFormat::kPng, PictureFormat::kBmp, PictureFormat::kWebp})
      EXPECT_EQ(testing::pixels_of(round_trip(picture, format, 100)), testing::pixels_of(picture))
          << name_of(format) << " " << width;
  }
}

TEST(Encode, RgbViewsKeepTheirColours) {
  const Picture rgb = sample(24, 16, PixelFormat::kRgb8);
  for (const PictureFormat format :
       {PictureFormat::kJpeg, PictureFormat::kPng, PictureFormat::kBmp, PictureFormat::kWebp}) {
    const Picture bgr = round_trip(rgb, format, 100);
    EXPECT_NEAR(bgr.row(8)[0], rgb.row(8)[2], 3) << name_of(format);  // blue: 40, far from red: 0
    EXPECT_NEAR(bgr.row(8)[2], rgb.row(8)[0], 3) << name_of(format);
  }
}

TEST(Encode, RowsOfAnyStrideAreRead) {
  const std::vector<uint8_t> pixels = {1, 2, 3, 99, 99, 4, 5, 6, 99, 99};
  const PictureView view{pixels.data(), 1, 2, 5, PixelFormat::kBgr8};
  EXPECT_EQ(testing::pixels_of(round_trip(view, PictureFormat::kPng)),
            (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Encode, QualityIsObeyed) {
  const Picture picture = sample(160, 120);
  for (const PictureFormat format : {PictureFormat::kJpeg, PictureFormat::kWebp}) {
    const auto fine = encode_picture(picture, format, {.quality = 95});
    const auto coarse = encode_picture(picture, format, {.quality = 10});
    ASSERT_TRUE(fine.ok() && coarse.ok());
    EXPECT_LT(coarse->size(), fine->size());
  }
  EXPECT_LE(worst_difference(round_trip(picture, PictureFormat::kJpeg, 100), picture),
            40);  // 4:2:0 edge
  EXPECT_FALSE(encode_picture(picture, PictureFormat::kJpeg, {.quality = 0}).ok());
  EXPECT_FALSE(encode_picture(picture, PictureFormat::kJpeg, {.quality = 101}).ok());
}

TEST(Encode, TheExtensionNamesTheFormat) {
  EXPECT_EQ(*format_for("a/b.JPG"), PictureFormat::kJpeg);
  EXPECT_EQ(*format_for("b.jpeg"), PictureFormat::kJpeg);
  EXPECT_EQ(*format_for("b.tar.png"), PictureFormat::kPng);
  EXPECT_EQ(*format_for("b.webp"), PictureFormat::kWebp);
  EXPECT_EQ(*format_for("b.bmp"), PictureFormat::kBmp);
  EXPECT_EQ(format_for("b.tif").error().code, Code::kUnsupported);
  EXPECT_EQ(format_for("a.png/b").error().code, Code::kUnsupported);
}

TEST(Encode, SidesBeyondTheFormatAreRefused) {
  const Picture wide = *Picture::create(70000, 1);
  EXPECT_EQ(encode_picture(wide, PictureFormat::kJpeg).error().code, Code::kInvalid);
  EXPECT_EQ(encode_picture(wide, PictureFormat::kWebp).error().code, Code::kInvalid);
  EXPECT_EQ(encode_picture(wide, PictureFormat::kTiff).error().code, Code::kUnsupported);
  EXPECT_FALSE(encode_picture(PictureView{}, PictureFormat::kPng).ok());
}

TEST(Encode, AFileIsWrittenWholeAndNothingElseIsLeft) {
  const testing::TemporaryFolder folder;
  const Picture picture = sample(20, 10);
  ASSERT_TRUE(encode_picture(picture, folder.file("a.png")).ok());
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.png"});
  const auto decoded = decode_picture(folder.file("a.png"));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(testing::crc_of(decoded->picture), testing::crc_of(picture));
}

TEST(Encode, AFolderThatIsNotThereIsAnErrorWithItsPath) {
  const auto status = encode_picture(sample(2, 2), "no/such/folder/a.png");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("no/such/folder/a.png"), std::string::npos);
}

TEST(Encode, AFullDiskKeepsTheOldFile) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.file("a.bmp");
  const Picture old = sample(4, 4);
  ASSERT_TRUE(encode_picture(old, path).ok());
  // A limit on file sizes stands in for the full disk: write() fails in the same way.
  struct rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tiny = {1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tiny);
  const Status status = encode_picture(sample(200, 200), path);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.bmp"});
  EXPECT_EQ(testing::crc_of(decode_picture(path)->picture), testing::crc_of(old));
}

}  // namespace
}  // namespace ferry::vision
