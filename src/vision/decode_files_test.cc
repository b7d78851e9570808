// Real files: every pixel equals what OpenCV 4.11 `imread(path, IMREAD_COLOR)` gives. The constants
// below come from it
// (`zlib.crc32(image.tobytes())`, `image.sum(axis=(0, 1))`); the GIF's from OpenCV 5.0. No
// tolerance, lossy codecs too: libjpeg-turbo 2.1.5 and 3.0, libwebp 1.2.4 and newer agree to the
// bit.
#include <gtest/gtest.h>

#include <filesystem>
#include <string_view>

#include "base/mapped_file.h"
#include "vision/decode.h"
#include "vision/test_files.h"

namespace ferry::vision {
namespace {

using testing::data_path;

struct Expected {
  std::string_view file;
  int64_t width, height;
  uint32_t crc;
  std::array<int64_t, 3> sums;  // blue, green, red
};

constexpr Expected kPictures[] = {
    {"bus.jpg", 810, 1080, 0x87ad6686, {103400424, 101126085, 102588514}},
    {"derived/bus_16bit.png", 405, 540, 0xe9ab575c, {25841277, 25272826, 25638168}},
    {"derived/bus_24bit.bmp", 405, 540, 0x1d41599a, {25849231, 25282834, 25646188}},
    {"derived/bus_411.jpg", 810, 1080, 0x9026675c, {103639777, 101037076, 102777835}},
    {"derived/bus_444.jpg", 810, 1080, 0xa1451786, {103423290, 101135929, 102617456}},
    {"derived/bus_cmyk.jpg", 810, 1080, 0xb08736b5, {103175293, 101413033, 102524107}},
    {"derived/bus_exif3.jpg", 810, 1080, 0x187aa0d0, {103449479, 101123989, 102633857}},
    {"derived/bus_exif6.jpg", 810, 1080, 0x8e7d41bb, {103450286, 101124926, 102637224}},
    {"derived/bus_exif8.jpg", 810, 1080, 0xd0988c2f, {103449781, 101130541, 102633809}},
    {"derived/bus_gray.jpg", 810, 1080, 0x4630fb3d, {101614129, 101614129, 101614129}},
    {"derived/bus_gray8.png", 405, 540, 0x576b3850, {25292038, 25292038, 25292038}},
    {"derived/bus_interlaced.png", 405, 540, 0x84afdf6a, {25740474, 25174124, 25538599}},
    {"derived/bus_lossless.webp", 405, 540, 0x1d41599a, {25849231, 25282834, 25646188}},
    {"derived/bus_lossy.webp", 810, 1080, 0x589e4510, {103394734, 101332550, 102541539}},
    {"derived/bus_lzw.tif", 405, 540, 0x1d41599a, {25849231, 25282834, 25646188}},
    {"derived/bus_palette.png", 405, 540, 0x95f33fd1, {25723459, 25220709, 25607636}},
    {"derived/bus_progressive.jpg", 810, 1080, 0x71e88b94, {103446366, 101139240, 102625040}},
    {"derived/bus_rgba.png", 405, 540, 0x1d41599a, {25849231, 25282834, 25646188}},
    {"derived/bus_truncated.jpg", 810, 1080, 0xfda5e10c, {106657425, 108399836, 109835937}},
    {"derived/bus_webp_named.jpg", 810, 1080, 0x589e4510, {103394734, 101332550, 102541539}},
    {"derived/one_pixel.png", 1, 1, 0xd243369f, {0, 0, 255}},
    {"derived/very_tall_3x2000.png", 3, 2000, 0xa8b2be4f, {756000, 756000, 756000}},
    {"derived/very_wide_4000x40.jpg", 4000, 40, 0xd87ba994, {18906558, 18506346, 18782859}},
    {"odd/16bit_gray.png", 20, 100, 0x45e37440, {255000, 255000, 255000}},
    {"odd/cmyk_adobe_100x100.jpg", 100, 100, 0x597195b7, {76138, 64423, 311427}},
    {"odd/exif_orientation_6.jpg", 128, 128, 0xa422180a, {1561994, 1311950, 1469234}},
    {"odd/flower.webp", 480, 360, 0x2ecad12a, {16295631, 22823844, 20635987}},
    {"odd/gray_128.jpg", 128, 128, 0x7af19e35, {1387601, 1387601, 1387601}},
    {"odd/png_decompression_bomb.png", 1, 1, 0xff41d912, {0, 0, 0}},
    {"odd/rle8.bmp", 128, 128, 0xb1550b12, {1563101, 1312572, 1469338}},
    {"odd/truncated.jpg", 100, 100, 0x166cc832, {1267230, 1282204, 1283557}},
    {"two_men_1280x720.jpg", 1280, 720, 0x9f91de61, {47451837, 53732620, 63980411}},
    {"odd/still.gif", 128, 128, 0x22e31fe1, {1562926, 1312042, 1468984}},
};

class RealPicture : public ::testing::TestWithParam<Expected> {};

TEST_P(RealPicture, EqualsOpenCv) {
  const Expected& expected = GetParam();
  const std::string path = data_path("images/" + std::string(expected.file));
  FERRY_NEED_FILE(path);
  const auto decoded = decode_picture(path);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->picture.width(), expected.width);
  EXPECT_EQ(decoded->picture.height(), expected.height);
  EXPECT_EQ(testing::sums_of(decoded->picture), expected.sums);
  EXPECT_EQ(testing::crc_of(decoded->picture), expected.crc);
  EXPECT_EQ(decoded->warning.empty(), expected.file.find("truncated") == std::string_view::npos)
      << decoded->warning;
}

std::string test_name(const ::testing::TestParamInfo<Expected>& info) {
  std::string name(info.param.file);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Files, RealPicture, ::testing::ValuesIn(kPictures), test_name);

TEST(RealPictures, ThatOpenCvCannotReadAreRefusedWithTheReason) {
  struct Row {
    const char* file;
    Code code;
    const char* says;
  };
  constexpr Row kRefused[] = {
      {"derived/bus_header_only.jpg", Code::kInvalid, "no image"},
      {"derived/empty.jpg", Code::kInvalid, "empty"},
      {"derived/text_named.png", Code::kUnsupported, "text file"},
      {"odd/broken.png", Code::kInvalid, "PNG: "},
      {"odd/LICENSE.txt", Code::kUnsupported, "text file"},
  };
  for (const Row& row : kRefused) {
    const std::string path = data_path(std::string("images/") + row.file);
    FERRY_NEED_FILE(path);
    const auto decoded = decode_picture(path);
    ASSERT_FALSE(decoded.ok()) << path;
    EXPECT_EQ(decoded.error().code, row.code) << path;
    EXPECT_NE(decoded.error().message.find(row.says), std::string::npos) << decoded.error().message;
    EXPECT_NE(decoded.error().message.find(path), std::string::npos) << decoded.error().message;
  }
}

TEST(RealPictures, AreToldApartByContentNotByName) {
  const std::string path = data_path("images/derived/bus_webp_named.jpg");
  FERRY_NEED_FILE(path);
  const auto decoded = decode_picture(path);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->format, PictureFormat::kWebp);
}

TEST(RealPictures, CutAnywhereGiveAPictureOrAnErrorAndNothingWorse) {
  const std::string folder = data_path("images/odd");
  FERRY_NEED_FILE(folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto file = MappedFile::open(entry.path().string());
    ASSERT_TRUE(file.ok());
    const auto bytes = (*file)->bytes();
    for (size_t part = 0; part < 24; ++part) {
      // A copy of exactly that size, so that a sanitizer sees a read past the end.
      const auto cut = bytes.first(bytes.size() * part / 24);
      const std::vector<std::byte> copy(cut.begin(), cut.end());
      const auto decoded = decode_picture(copy);
      EXPECT_TRUE(decoded.ok() || !decoded.error().message.empty());
    }
  }
}

TEST(RealPictures, WithOneByteChangedGiveAPictureOrAnErrorAndNothingWorse) {
  const std::string folder = data_path("images/odd");
  FERRY_NEED_FILE(folder);
  uint32_t random = 1;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto file = MappedFile::open(entry.path().string());
    ASSERT_TRUE(file.ok());
    const auto bytes = (*file)->bytes();
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    for (int i = 0; i < 64; ++i) {
      random = random * 1664525 + 1013904223;
      const size_t at = (random >> 8) % std::min<size_t>(copy.size(), i < 32 ? 128 : copy.size());
      const std::byte before = copy[at];
      copy[at] ^= static_cast<std::byte>(1 << (random % 8));
      const auto decoded = decode_picture(copy, {.max_pixels = 1 << 20});
      EXPECT_TRUE(decoded.ok() || !decoded.error().message.empty());
      copy[at] = before;
    }
  }
}

}  // namespace
}  // namespace ferry::vision
