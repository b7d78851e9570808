// Any bytes as a picture file: an error or a picture whose every pixel can be read, never more.
#include <cstddef>
#include <cstdint>
#include <span>

#include "vision/decode.h"
#include "vision/decode_exif.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)ferry::vision::exif_orientation(bytes);
  const auto decoded = ferry::vision::decode_picture(bytes, {.max_pixels = 1 << 16});
  if (!decoded.ok()) return decoded.error().message.empty() ? -1 : 0;
  const ferry::vision::Picture& picture = decoded->picture;
  volatile uint64_t sum = 0;
  for (int64_t y = 0; y < picture.height(); ++y)
    for (int64_t i = 0; i < picture.width() * ferry::vision::kBytesPerPixel; ++i)
      sum = sum + picture.row(y)[i];
  return 0;
}
