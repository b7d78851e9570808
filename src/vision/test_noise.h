// Formula pictures that Python computes too (tests/tools/make_letterbox_cases.py), and the digest
// in which their results are kept. Tests only.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "vision/picture.h"

namespace ferry::vision::testing {

inline uint8_t noise(int64_t x, int64_t y, int channel) {
  uint32_t v = static_cast<uint32_t>(x) * 2654435761u + static_cast<uint32_t>(y) * 2246822519u +
               static_cast<uint32_t>(channel) * 3266489917u;
  v ^= v >> 15;
  v *= 2246822519u;
  v ^= v >> 13;
  return static_cast<uint8_t>(v);
}

// Borrowed-looking pixels: a stride of its own, and not one byte past the last pixel.
struct Noise {
  std::vector<uint8_t> bytes;
  PictureView view;

  Noise(int64_t width, int64_t height, PixelFormat format, int64_t row_gap = 0) {
    const int64_t stride = width * 3 + row_gap;
    bytes.resize((height - 1) * stride + width * 3);
    view = {bytes.data(), width, height, stride, format};
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int c = 0; c < 3; ++c) {
          const int at = format == PixelFormat::kRgb8 ? c : 2 - c;
          bytes[y * stride + x * 3 + at] = noise(x, y, c);
        }
      }
    }
  }
};

inline std::string fnv(const std::vector<uint8_t>& bytes) {
  uint64_t value = 0xcbf29ce484222325u;
  for (uint8_t byte : bytes) value = (value ^ byte) * 0x100000001b3u;
  return fmt::format("{:016x}", value);
}

}  // namespace ferry::vision::testing
