#include "vision/decode.h"

#include <algorithm>
#include <utility>

#include "base/mapped_file.h"
#include "vision/decode_formats.h"
#include "vision/picture_orient.h"

namespace ferry::vision {
namespace {

using namespace std::string_view_literals;

struct FormatRow {
  PictureFormat format;
  std::string_view name;
  Result<Decoded> (*decode)(Bytes, const DecodeOptions&);
};

constexpr FormatRow kFormats[] = {
    {PictureFormat::kJpeg, "JPEG", decode_jpeg}, {PictureFormat::kPng, "PNG", decode_png},
    {PictureFormat::kWebp, "WebP", decode_webp}, {PictureFormat::kTiff, "TIFF", decode_tiff},
    {PictureFormat::kBmp, "BMP", decode_bmp},    {PictureFormat::kGif, "GIF", decode_gif},
};

const FormatRow& row_of(PictureFormat format) {
  for (const FormatRow& row : kFormats)
    if (row.format == format) return row;
  assert_failed("row_of", __FILE__, __LINE__, "Every PictureFormat has a row.");
}

struct Signature {
  PictureFormat format;
  std::string_view start;
  std::string_view at_8 = {};  // what must stand at byte 8
};

constexpr Signature kSignatures[] = {
    {PictureFormat::kJpeg, "\xff\xd8\xff"sv},   {PictureFormat::kPng, "\x89PNG\r\n\x1a\n"sv},
    {PictureFormat::kWebp, "RIFF"sv, "WEBP"sv}, {PictureFormat::kTiff, "II*\0"sv},
    {PictureFormat::kTiff, "MM\0*"sv},          {PictureFormat::kTiff, "II+\0"sv},
    {PictureFormat::kTiff, "MM\0+"sv},          {PictureFormat::kBmp, "BM"sv},
    {PictureFormat::kGif, "GIF87a"sv},          {PictureFormat::kGif, "GIF89a"sv},
};

// What else people name .jpg, so that the refusal can say it.
struct Stranger {
  std::string_view start;
  std::string_view at_4 = {};
  std::string_view what;
};

constexpr Stranger kStrangers[] = {
    {"", "ftypheic", "a HEIC picture"},
    {"", "ftypmif1", "a HEIF picture"},
    {"", "ftypavif", "an AVIF picture"},
    {"", "ftyp", "an MP4 or QuickTime video"},
    {"\xff\x0a", "", "a JPEG XL picture"},
    {"\0\0\0\x0cJXL "sv, "", "a JPEG XL picture"},
    {"\0\0\0\x0cjP  "sv, "", "a JPEG 2000 picture"},
    {"%PDF", "", "a PDF document"},
    {"PK\x03\x04", "", "a zip archive"},
    {"<svg", "", "an SVG drawing"},
    {"<!DOCTYPE", "", "a web page"},
    {"<!doctype", "", "a web page"},
    {"<html", "", "a web page"},
    {"<?xml", "", "an XML file"},
    {"version https://git-lfs", "", "a Git LFS pointer; fetch the real file with `git lfs pull`"},
};

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool looks_like_text(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 32 || c == '\n' || c == '\r' || c == '\t';
  });
}

}  // namespace

std::string_view name_of(PictureFormat format) { return row_of(format).name; }

Status check_size(int64_t width, int64_t height, const DecodeOptions& options) {
  if (width < 1 || height < 1 || width > kMaxPictureSide || height > kMaxPictureSide)
    return error(Code::kInvalid, "the file says {} x {} pixels; sides must be 1 to {}", width,
                 height, kMaxPictureSide);
  if (width * height > std::min(options.max_pixels, kMaxPicturePixels))
    return error(Code::kNoMemory, "the file says {} x {} pixels, the limit is {} in all", width,
                 height, std::min(options.max_pixels, kMaxPicturePixels));
  return {};
}

Result<PictureFormat> sniff_picture(Bytes bytes) {
  if (bytes.empty()) return error(Code::kInvalid, "the file is empty");
  const std::string_view head = text_of(bytes).substr(0, 64);
  for (const Signature& s : kSignatures)
    if (head.starts_with(s.start) &&
        (s.at_8.empty() || (head.size() >= 12 && head.substr(8).starts_with(s.at_8))))
      return s.format;
  for (const Stranger& s : kStrangers)
    if (head.starts_with(s.start) &&
        (s.at_4.empty() || (head.size() >= 12 && head.substr(4).starts_with(s.at_4))))
      return error(Code::kUnsupported, "this is {}, not a JPEG, PNG, WebP, TIFF, BMP or GIF",
                   s.what);
  if (looks_like_text(head))
    return error(Code::kUnsupported,
                 "this is a text file, not a JPEG, PNG, WebP, TIFF, BMP or GIF");
  return error(Code::kUnsupported, "this is not a JPEG, PNG, WebP, TIFF, BMP or GIF");
}

Result<DecodedPicture> decode_picture(Bytes bytes, const DecodeOptions& options) {
  FERRY_TRY(format, sniff_picture(bytes));
  const FormatRow& row = row_of(format);
  FERRY_TRY(decoded, row.decode(bytes, options).within(row.name));
  DecodedPicture result{std::move(decoded.picture), format, std::move(decoded.warning),
                        decoded.orientation};
  if (options.orientation == Orientation::kApply) {
    FERRY_TRY(upright, orient(std::move(result.picture), decoded.orientation));
    result.picture = std::move(upright);
  }
  return result;
}

Result<DecodedPicture> decode_picture(const std::string& path, const DecodeOptions& options) {
  FERRY_TRY(file, MappedFile::open(path));
  return decode_picture(file->bytes(), options).within(fmt::format("picture '{}'", path));
}

}  // namespace ferry::vision
