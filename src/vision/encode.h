// Writes pictures as JPEG, PNG, WebP or BMP.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vision/decode.h"
#include "vision/picture.h"

namespace ferry::vision {

struct EncodeOptions {
  // JPEG and WebP: 1 (small) to 100 (fine). 95 with 4:2:0 chroma is what OpenCV writes, so what
  // upstream's users know. WebP at 100 is lossless. PNG and BMP are lossless whatever it says.
  int quality = 95;
};

// By the extension, in any case: jpg, jpeg, jpe, png, webp, bmp. kUnsupported for others, naming
// them.
Result<PictureFormat> format_for(std::string_view path);

// The bytes of a file. kUnsupported for TIFF and GIF, kInvalid for sides the format cannot hold
// (JPEG 65535, WebP 16383) and for a quality outside 1..100.
Result<std::vector<std::byte>> encode_picture(const PictureView& picture, PictureFormat format,
                                              const EncodeOptions& options = {});

// The same into a file, in the format that its extension names. Written aside and renamed: `path`
// holds the old or the whole new picture, also when the disk is full (kIo).
Status encode_picture(const PictureView& picture, const std::string& path,
                      const EncodeOptions& options = {});

}  // namespace ferry::vision
