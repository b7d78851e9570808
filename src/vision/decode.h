// Reads picture files: JPEG, PNG, WebP, TIFF, BMP and the first frame of a GIF, told apart by
// content, never by name.
//
// The pixels equal what OpenCV's imread(path, IMREAD_COLOR) gives, since that is what YOLOv5 was
// trained and measured with: three channels BGR, 8 bits (the high byte of 16-bit PNG samples),
// palettes expanded, gray repeated, alpha dropped without blending, CMYK by OpenCV's formula, and
// the EXIF orientation applied. GIF is beyond OpenCV 4.6: transparent pixels come out white.
//
// Bad files end in an error or, where OpenCV gives a picture too (a JPEG cut short), in a picture
// with a warning. Memory is bounded by `max_pixels`: 3 bytes a pixel for the picture, up to 15
// more while TIFF or progressive JPEG is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "vision/picture.h"

namespace ferry::vision {

enum class PictureFormat : unsigned char { kJpeg, kPng, kWebp, kTiff, kBmp, kGif };

std::string_view name_of(PictureFormat format);  // "JPEG", "PNG", ...

enum class Orientation : unsigned char {
  kApply,   // rotate and mirror as the EXIF tag says, as OpenCV does
  kIgnore,  // the pixels as stored
};

struct DecodeOptions {
  // A picture of more pixels is refused before any memory is taken, with its size in the message (a
  // few kilobytes can claim gigapixels). 2^26 is 8192 x 8192.
  int64_t max_pixels = int64_t{1} << 26;
  Orientation orientation = Orientation::kApply;
};

struct DecodedPicture {
  Picture picture;  // BGR
  PictureFormat format = PictureFormat::kJpeg;
  std::string warning;  // empty when the file was sound, else what was wrong with it
  int orientation = 1;  // the EXIF value that the file carries, 1 to 8; applied unless told not to
};

// The format the first bytes claim, or kUnsupported with what they look like instead (text, HTML,
// HEIC, ...).
Result<PictureFormat> sniff_picture(std::span<const std::byte> bytes);

// Decodes a whole file held in memory. Errors: kInvalid for broken files, kUnsupported for forms
// that no decoder here knows, kNoMemory past a limit. Safe to call from several threads.
Result<DecodedPicture> decode_picture(std::span<const std::byte> bytes,
                                      const DecodeOptions& options = {});

// The same for a file; the message of every error begins with its path. Also kNotFound and kIo.
Result<DecodedPicture> decode_picture(const std::string& path, const DecodeOptions& options = {});

}  // namespace ferry::vision
