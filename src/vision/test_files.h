// What vision's tests share: where the real files are, checksums, small files made on the spot.
// Tests only.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "vision/picture.h"

namespace ferry::vision::testing {

// `FERRY_DATA`, else ../shared/data. The folder may be absent: tests then skip and say what was not
// checked.
inline std::string data_path(const std::string& name) {
  const char* root = std::getenv("FERRY_DATA");
  return std::string(root != nullptr ? root : "../shared/data") + "/" + name;
}

#define FERRY_NEED_FILE(path)               \
  if (!std::filesystem::exists(path))       \
  GTEST_SKIP() << "NOT CHECKED: " << (path) \
               << " is absent; set FERRY_DATA to the folder of real files"

// CRC-32 of the pixels without row padding: Python's zlib.crc32(image.tobytes()).
inline uint32_t crc_of(const PictureView& picture) {
  uLong crc = crc32(0, nullptr, 0);
  for (int64_t y = 0; y < picture.height; ++y)
    crc = crc32(crc, picture.row(y), static_cast<uInt>(picture.width * kBytesPerPixel));
  return static_cast<uint32_t>(crc);
}

// Sums of the three channels, in the picture's order: image.sum(axis=(0, 1)).
inline std::array<int64_t, 3> sums_of(const PictureView& picture) {
  std::array<int64_t, 3> sums{};
  for (int64_t y = 0; y < picture.height; ++y)
    for (int64_t x = 0; x < picture.width; ++x)
      for (size_t c = 0; c < 3; ++c) sums[c] += picture.at(x, y)[c];
  return sums;
}

inline std::vector<uint8_t> pixels_of(const PictureView& picture) {
  std::vector<uint8_t> all;
  for (int64_t y = 0; y < picture.height; ++y)
    all.insert(all.end(), picture.row(y), picture.row(y) + picture.width * kBytesPerPixel);
  return all;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A folder of its own for one test, removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ferry-vision-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Names of everything in it.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.push_back(entry.path().filename().string());
    return found;
  }

 private:
  std::string path_;
};

inline std::string big32(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string png_chunk(const std::string& type, const std::string& content) {
  const std::string body = type + content;
  const uLong crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big32(static_cast<uint32_t>(content.size())) + body + big32(static_cast<uint32_t>(crc));
}

// A PNG of given header fields; `rows` holds the filter byte (0) and the samples of each row;
// `extra` are chunks that stand before the pixels.
inline std::string make_png(uint32_t width, uint32_t height, int depth, int color_type,
                            const std::string& rows, const std::string& extra = {}) {
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), static_cast<uLong>(rows.size()));
  packed.resize(size);
  const std::string header = big32(width) + big32(height) + static_cast<char>(depth) +
                             static_cast<char>(color_type) + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + extra + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

}  // namespace ferry::vision::testing
