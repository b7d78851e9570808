// The decoders behind decode_picture, one file each. Internal to vision.
//
// Every decoder gets bytes that begin with its signature, checks the declared size with
// `check_size` before it takes memory, turns the library's complaints into a Result, and leaves the
// EXIF orientation to `decode_picture`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "vision/decode.h"

namespace ferry::vision {

struct Decoded {
  Picture picture;
  int orientation = 1;  // the EXIF value, 1..8
  std::string warning;
};

using Bytes = std::span<const std::byte>;

// kInvalid for sides outside 1..kMaxPictureSide, kNoMemory past the limit; the message says the
// size.
Status check_size(int64_t width, int64_t height, const DecodeOptions& options);

Result<Decoded> decode_jpeg(Bytes bytes, const DecodeOptions& options);
Result<Decoded> decode_png(Bytes bytes, const DecodeOptions& options);
Result<Decoded> decode_webp(Bytes bytes, const DecodeOptions& options);
Result<Decoded> decode_tiff(Bytes bytes, const DecodeOptions& options);
Result<Decoded> decode_bmp(Bytes bytes, const DecodeOptions& options);
Result<Decoded> decode_gif(Bytes bytes, const DecodeOptions& options);

}  // namespace ferry::vision
