#include "vision/picture_orient.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ferry::vision {
namespace {

struct Pixel {
  uint8_t c[3];
};

void mirror_rows(Picture& picture) {
  for (int64_t y = 0; y < picture.height(); ++y) {
    auto* row = reinterpret_cast<Pixel*>(picture.row(y));
    std::reverse(row, row + picture.width());
  }
}

void flip_rows(Picture& picture) {
  const int64_t bytes = picture.width() * kBytesPerPixel;
  for (int64_t top = 0, bottom = picture.height() - 1; top < bottom; ++top, --bottom)
    std::swap_ranges(picture.row(top), picture.row(top) + bytes, picture.row(bottom));
}

// (x, y) -> (y, x), in blocks that stay in the first-level cache on both sides.
Result<Picture> transposed(const Picture& from) {
  FERRY_TRY(to, Picture::create(from.height(), from.width(), from.format()));
  constexpr int64_t kBlock = 32;
  for (int64_t y0 = 0; y0 < from.height(); y0 += kBlock)
    for (int64_t x0 = 0; x0 < from.width(); x0 += kBlock) {
      const int64_t y1 = std::min(y0 + kBlock, from.height());
      const int64_t x1 = std::min(x0 + kBlock, from.width());
      for (int64_t x = x0; x < x1; ++x) {
        auto* out = reinterpret_cast<Pixel*>(to.row(x));
        for (int64_t y = y0; y < y1; ++y) out[y] = reinterpret_cast<const Pixel*>(from.row(y))[x];
      }
    }
  return to;
}

}  // namespace

Result<Picture> orient(Picture picture, int orientation) {
  if (picture.empty() || orientation < 2 || orientation > 8) return picture;
  if (orientation >= 5) {
    FERRY_TRY(turned, transposed(picture));
    picture = std::move(turned);
  }
  if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7)
    mirror_rows(picture);
  if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8)
    flip_rows(picture);
  return picture;
}

}  // namespace ferry::vision
