#include "vision/decode.h"

#include <gtest/gtest.h>
#include <jpeglib.h>

#include <cstdlib>
#include <string>

#include "vision/decode_exif.h"
#include "vision/picture_orient.h"
#include "vision/test_files.h"

namespace ferry::vision {
namespace {

using namespace std::string_literals;
using testing::bytes_of;
using testing::make_png;
using testing::pixels_of;
using testing::png_chunk;
using Pixels = std::vector<uint8_t>;

Pixels decoded_pixels(const std::string& file) {
  const auto decoded = decode_picture(bytes_of(file));
  EXPECT_TRUE(decoded.ok()) << decoded.error().message;
  return decoded.ok() ? pixels_of(decoded->picture) : Pixels{};
}

Error decode_error(const std::string& file, const DecodeOptions& options = {}) {
  auto decoded = decode_picture(bytes_of(file), options);
  EXPECT_FALSE(decoded.ok());
  return decoded.ok() ? Error{} : std::move(decoded).error();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// EXIF with one entry: orientation, in either byte order.
std::string exif_of(int orientation, bool little = true) {
  const char value = static_cast<char>(orientation);
  return little
             ? "II*\0\x08\0\0\0"s + "\x01\0\x12\x01\x03\0\x01\0\0\0"s + value + "\0\0\0\0\0\0\0"s
             : "MM\0*\0\0\0\x08"s + "\0\x01\x01\x12\0\x03\0\0\0\x01\0"s + value + "\0\0\0\0\0\0"s;
}

TEST(DecodePng, RgbBecomesBgr) {
  EXPECT_EQ(decoded_pixels(make_png(2, 1, 8, 2, "\0\x01\x02\x03\x04\x05\x06"s)),
            (Pixels{3, 2, 1, 6, 5, 4}));
}

TEST(DecodePng, SixteenBitSamplesKeepTheirHighByte) {
  // 0x12ff is not rounded up.
  EXPECT_EQ(decoded_pixels(make_png(1, 1, 16, 2, "\0\x12\xff\x34\x80\x56\x7f"s)),
            (Pixels{0x56, 0x34, 0x12}));
}

TEST(DecodePng, AlphaIsDroppedNotBlended) {
  EXPECT_EQ(decoded_pixels(make_png(2, 1, 8, 6, "\0\x0a\x14\x1e\0\x0a\x14\x1e\x80"s)),
            (Pixels{30, 20, 10, 30, 20, 10}));
}

TEST(DecodePng, GrayOfEveryDepthIsScaledToEightBits) {
  EXPECT_EQ(decoded_pixels(make_png(4, 1, 2, 0, "\0\x1b"s)),  // 0 1 2 3
            (Pixels{0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255}));
  EXPECT_EQ(decoded_pixels(make_png(2, 1, 1, 0, "\0\x40"s)), (Pixels{0, 0, 0, 255, 255, 255}));
}

TEST(DecodePng, PaletteIsExpanded) {
  const std::string palette = png_chunk("PLTE", "\x01\x02\x03\x0a\x0b\x0c"s);
  EXPECT_EQ(decoded_pixels(make_png(2, 1, 8, 3, "\0\x01\0"s, palette)),
            (Pixels{12, 11, 10, 3, 2, 1}));
}

TEST(DecodePng, ExifOrientationIsAppliedUnlessTheCallerDeclines) {
  const std::string file = make_png(2, 1, 8, 0, "\0\x01\x02"s, png_chunk("eXIf", exif_of(6)));
  const auto upright = decode_picture(bytes_of(file));
  ASSERT_TRUE(upright.ok());
  EXPECT_EQ(upright->picture.width(), 1);
  EXPECT_EQ(pixels_of(upright->picture), (Pixels{1, 1, 1, 2, 2, 2}));
  const auto stored = decode_picture(bytes_of(file), {.orientation = Orientation::kIgnore});
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->picture.width(), 2);
}

TEST(DecodePng, ABombIsRefusedByItsDeclaredSize) {
  const Error refusal = decode_error(make_png(60000, 50000, 8, 2, "\0"s));
  EXPECT_EQ(refusal.code, Code::kNoMemory);
  EXPECT_TRUE(contains(refusal.message, "60000 x 50000")) << refusal.message;
  EXPECT_TRUE(contains(refusal.message, "67108864")) << refusal.message;  // the limit
}

TEST(DecodePng, TheLimitIsTheCallersToSet) {
  const std::string file = make_png(3, 2, 8, 0, "\0\x01\x02\x03\0\x04\x05\x06"s);
  EXPECT_TRUE(decode_picture(bytes_of(file), {.max_pixels = 6}).ok());
  EXPECT_EQ(decode_error(file, {.max_pixels = 5}).code, Code::kNoMemory);
}

TEST(DecodePng, RowsThatAreMissingAreAnError) {
  EXPECT_EQ(decode_error(make_png(2, 3, 8, 0, "\0\x01\x02"s)).code, Code::kInvalid);
}

TEST(DecodePng, ATextBombBesideThePixelsDoesNoHarm) {
  std::string zeros(40 << 20, '\0');
  uLongf size = compressBound(static_cast<uLong>(zeros.size()));
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
            reinterpret_cast<const Bytef*>(zeros.data()), static_cast<uLong>(zeros.size()), 9);
  packed.resize(size);
  const std::string text = png_chunk("zTXt", "key\0\0"s + packed);
  EXPECT_EQ(decoded_pixels(make_png(1, 1, 8, 0, "\0\x07"s, text)), (Pixels{7, 7, 7}));
}

// Bytes of a small JPEG by libjpeg, gray of one value, optionally progressive.
std::string make_jpeg(int width, int height, uint8_t value, bool progressive = false) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> line(static_cast<size_t>(width), value);
  JSAMPROW row = line.data();
  while (info.next_scanline < info.image_height) jpeg_write_scanlines(&info, &row, 1);
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<char*>(data), size);
  jpeg_destroy_compress(&info);
  std::free(data);
  return file;
}

std::string with_exif(const std::string& jpeg, const std::string& exif) {
  const std::string content = "Exif\0\0"s + exif;
  const size_t size = content.size() + 2;
  return jpeg.substr(0, 2) + "\xff\xe1"s + static_cast<char>(size >> 8) + static_cast<char>(size) +
         content + jpeg.substr(2);
}

TEST(DecodeJpeg, GrayBecomesThreeEqualChannels) {
  EXPECT_EQ(decoded_pixels(make_jpeg(1, 1, 128)), (Pixels{128, 128, 128}));
}

TEST(DecodeJpeg, EveryExifOrientationTurnsThePicture) {
  const std::string jpeg = make_jpeg(5, 3, 90);
  for (int orientation = 0; orientation <= 9; ++orientation) {
    const auto decoded = decode_picture(bytes_of(with_exif(jpeg, exif_of(orientation))));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->picture.width(), orientation >= 5 && orientation <= 8 ? 3 : 5)
        << orientation;
  }
}

TEST(DecodeJpeg, AFileCutInItsPixelsGivesGrayAndAWarning) {
  const std::string whole = make_jpeg(64, 64, 255);
  const size_t scan = whole.rfind("\xff\xda"s);
  const auto decoded =
      decode_picture(bytes_of(whole.substr(0, scan + 10)));  // the scan header only
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->picture.row(63)[0], 128);
  EXPECT_TRUE(contains(decoded->warning, "Premature end")) << decoded->warning;
}

TEST(DecodeJpeg, AFileWithoutPixelsIsAnError) {
  const std::string whole = make_jpeg(8, 8, 9);
  EXPECT_EQ(decode_error(whole.substr(0, whole.rfind("\xff\xda"s))).code, Code::kInvalid);
  EXPECT_EQ(decode_error("\xff\xd8\xff"s).code, Code::kInvalid);
}

TEST(DecodeJpeg, HundredsOfScansAreRefused) {
  const std::string whole = make_jpeg(16, 16, 200, /*progressive=*/true);
  const size_t last_scan = whole.rfind("\xff\xda"s);
  const std::string scan = whole.substr(last_scan, whole.size() - 2 - last_scan);
  std::string bomb = whole.substr(0, last_scan);
  for (int i = 0; i < 300; ++i) bomb += scan;
  const Error refusal = decode_error(bomb + "\xff\xd9"s);
  EXPECT_TRUE(contains(refusal.message, "scans")) << refusal.message;
}

TEST(DecodeJpeg, ABombIsRefusedByItsDeclaredSize) {
  std::string bomb = make_jpeg(8, 8, 9);
  const size_t frame = bomb.find("\xff\xc0"s);
  bomb.replace(frame + 5, 4, "\xff\xdc\xff\xdc"s);  // 65500 x 65500
  const Error refusal = decode_error(bomb);
  EXPECT_EQ(refusal.code, Code::kNoMemory);
  EXPECT_TRUE(contains(refusal.message, "65500 x 65500")) << refusal.message;
}

std::string little(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string make_bmp(int width, int height, int bits, const std::string& rest) {
  const std::string header = little(40, 4) + little(static_cast<uint32_t>(width), 4) +
                             little(static_cast<uint32_t>(height), 4) + little(1, 2) +
                             little(static_cast<uint32_t>(bits), 2) + std::string(24, '\0');
  return "BM" + little(static_cast<uint32_t>(54 + rest.size()), 4) + little(0, 4) + little(54, 4) +
         header + rest;
}

TEST(DecodeBmp, RowsGoFromBottomToTopUnlessTheHeightIsNegative) {
  const std::string rows = "\x01\x02\x03\0\x04\x05\x06\0"s;
  EXPECT_EQ(decoded_pixels(make_bmp(1, 2, 24, rows)), (Pixels{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(decoded_pixels(make_bmp(1, -2, 24, rows)), (Pixels{1, 2, 3, 4, 5, 6}));
}

TEST(DecodeBmp, SixteenBitPixelsAreFilledWithZeros) {
  EXPECT_EQ(decoded_pixels(make_bmp(2, 1, 16, "\xff\x7f\x01\0"s)),
            (Pixels{248, 248, 248, 8, 0, 0}));
}

TEST(DecodeBmp, ABombIsRefusedByItsDeclaredSize) {
  EXPECT_EQ(decode_error(make_bmp(1 << 19, 1 << 19, 24, "")).code, Code::kNoMemory);
  EXPECT_EQ(decode_error(make_bmp(-5, 3, 24, "")).code, Code::kInvalid);
}

TEST(DecodeGif, ABombIsRefusedByItsDeclaredSize) {
  EXPECT_EQ(decode_error("GIF89a\xff\xff\xff\xff\0\0\0;"s).code, Code::kNoMemory);
}

TEST(DecodeTiff, ADirectoryWithoutASizeIsRefused) {
  EXPECT_EQ(decode_error("II*\0\x08\0\0\0\0\0\0\0\0\0"s).code, Code::kInvalid);
}

TEST(Decode, WhatIsNotAPictureIsNamed) {
  const struct {
    std::string bytes;
    const char* says;
  } rows[] = {
      {"", "empty"},
      {"<!DOCTYPE html><html>", "web page"},
      {"\0\0\0\x18"
       "ftypheic\0\0\0\0"s,
       "HEIC"},
      {"PK\x03\x04 and more", "zip"},
      {"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
      {"\x01\x02\x03\x04", "not a JPEG"},
      {"RIFF\0\0\0\0WAVEfmt "s, "not a JPEG"},
  };
  for (const auto& row : rows)
    EXPECT_TRUE(contains(decode_error(row.bytes).message, row.says))
        << decode_error(row.bytes).message;
}

TEST(Decode, AFolderAndAMissingFileAreErrorsWithTheirPath) {
  EXPECT_EQ(decode_picture("no/such/picture.jpg"s).error().code, Code::kNotFound);
  EXPECT_TRUE(
      contains(decode_picture("no/such/picture.jpg"s).error().message, "no/such/picture.jpg"));
  EXPECT_EQ(decode_picture("/"s).error().code, Code::kIo);
}

TEST(ExifOrientation, IsReadInBothByteOrders) {
  for (int value = 1; value <= 8; ++value) {
    EXPECT_EQ(exif_orientation(bytes_of(exif_of(value, true))), value);
    EXPECT_EQ(exif_orientation(bytes_of(exif_of(value, false))), value);
  }
}

TEST(ExifOrientation, IsOneForAnythingElse) {
  EXPECT_EQ(exif_orientation({}), 1);
  EXPECT_EQ(exif_orientation(bytes_of(exif_of(9))), 1);
  EXPECT_EQ(exif_orientation(bytes_of(exif_of(0))), 1);
  EXPECT_EQ(exif_orientation(bytes_of("II*\0\xff\xff\xff\xff"s)), 1);  // a directory beyond the end
  const std::string whole = exif_of(6);
  for (size_t size = 0; size < 22; ++size)
    EXPECT_EQ(exif_orientation(bytes_of(whole.substr(0, size))), 1) << size;
}

TEST(Orient, PlacesEveryPixelAsExifSays) {
  // 1 2 3
  // 4 5 6
  const Pixels stored = {1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 5, 0, 0, 6, 0, 0};
  const struct {
    int orientation;
    int64_t width;
    std::vector<int> seen;
  } rows[] = {
      {0, 3, {1, 2, 3, 4, 5, 6}}, {1, 3, {1, 2, 3, 4, 5, 6}}, {2, 3, {3, 2, 1, 6, 5, 4}},
      {3, 3, {6, 5, 4, 3, 2, 1}}, {4, 3, {4, 5, 6, 1, 2, 3}}, {5, 2, {1, 4, 2, 5, 3, 6}},
      {6, 2, {4, 1, 5, 2, 6, 3}}, {7, 2, {6, 3, 5, 2, 4, 1}}, {8, 2, {3, 6, 2, 5, 1, 4}},
      {9, 3, {1, 2, 3, 4, 5, 6}},
  };
  for (const auto& row : rows) {
    auto turned =
        orient(*Picture::copy_of({stored.data(), 3, 2, 9, PixelFormat::kBgr8}), row.orientation);
    ASSERT_TRUE(turned.ok());
    EXPECT_EQ(turned->width(), row.width);
    std::vector<int> seen;
    for (int64_t y = 0; y < turned->height(); ++y)
      for (int64_t x = 0; x < turned->width(); ++x) seen.push_back(turned->view().at(x, y)[0]);
    EXPECT_EQ(seen, row.seen) << "orientation " << row.orientation;
  }
}

TEST(Orient, TransposesPicturesLargerThanItsBlocks) {
  Picture picture = *Picture::create(70, 45);
  for (int64_t y = 0; y < 45; ++y)
    for (int64_t x = 0; x < 70; ++x) picture.row(y)[x * 3] = static_cast<uint8_t>(x * 3 + y * 7);
  const auto turned = orient(*picture.clone(), 5);
  ASSERT_TRUE(turned.ok());
  for (int64_t y = 0; y < 45; ++y)
    for (int64_t x = 0; x < 70; ++x) ASSERT_EQ(turned->row(x)[y * 3], picture.row(y)[x * 3]);
}

}  // namespace
}  // namespace ferry::vision
