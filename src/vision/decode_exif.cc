#include "vision/decode_exif.h"

#include <cstdint>

namespace ferry::vision {
namespace {

constexpr uint32_t kTagOrientation = 0x0112;
constexpr size_t kEntrySize = 12;

// Bounded reads in the byte order of the file; past the end they give 0.
struct Reader {
  std::span<const std::byte> data;
  bool little;

  uint32_t byte(size_t at) const { return at < data.size() ? static_cast<uint32_t>(data[at]) : 0; }
  uint32_t u16(size_t at) const {
    return little ? byte(at) | byte(at + 1) << 8 : byte(at) << 8 | byte(at + 1);
  }
  uint32_t u32(size_t at) const {
    return little ? u16(at) | u16(at + 2) << 16 : u16(at) << 16 | u16(at + 2);
  }
};

}  // namespace

int exif_orientation(std::span<const std::byte> exif) {
  if (exif.size() < 8 || exif[0] != exif[1]) return 1;
  const auto order = static_cast<char>(exif[0]);
  if (order != 'I' && order != 'M') return 1;
  const Reader in{exif, order == 'I'};
  if (in.u16(2) != 42) return 1;
  const size_t directory = in.u32(4);
  const uint32_t entries = in.u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntrySize;
    if (entry + kEntrySize > exif.size()) break;
    if (in.u16(entry) != kTagOrientation) continue;
    const uint32_t value = in.u16(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace ferry::vision
