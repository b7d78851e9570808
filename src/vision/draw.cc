#include "vision/draw.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "vision/draw_label.h"

namespace ferry::vision {
namespace {

constexpr Color kClassColors[] = {
    {0xFF, 0x38, 0x38}, {0xFF, 0x9D, 0x97}, {0xFF, 0x70, 0x1F}, {0xFF, 0xB2, 0x1D},
    {0xCF, 0xD2, 0x31}, {0x48, 0xF9, 0x0A}, {0x92, 0xCC, 0x17}, {0x3D, 0xDB, 0x86},
    {0x1A, 0x93, 0x34}, {0x00, 0xD4, 0xBB}, {0x2C, 0x99, 0xA8}, {0x00, 0xC2, 0xFF},
    {0x34, 0x45, 0x93}, {0x64, 0x73, 0xFF}, {0x00, 0x18, 0xEC}, {0x84, 0x38, 0xFF},
    {0x52, 0x00, 0x85}, {0xCB, 0x38, 0xFF}, {0xFF, 0x95, 0xC8}, {0xFF, 0x37, 0xC7},
};

constexpr int64_t kFontPixelsPerLine = 8;
constexpr int64_t kMinFontPixels = 12;
constexpr int64_t kMaxLineWidth = 256;

// Half-open: x0 <= x < x1. Empty when x0 >= x1 or y0 >= y1.
struct Rect {
  int64_t x0, y0, x1, y1;
};

Rect clipped(const Rect& rect, const Picture& picture) {
  return {std::max<int64_t>(rect.x0, 0), std::max<int64_t>(rect.y0, 0),
          std::min(rect.x1, picture.width()), std::min(rect.y1, picture.height())};
}

// The three bytes of a colour in the picture's order.
struct Pixel {
  uint8_t c[3];
};

Pixel pixel_of(Color color, const Picture& picture) {
  if (picture.format() == PixelFormat::kBgr8) return {{color.blue, color.green, color.red}};
  return {{color.red, color.green, color.blue}};
}

void fill(Picture& picture, const Rect& wanted, Pixel pixel) {
  const Rect rect = clipped(wanted, picture);
  if (rect.x0 >= rect.x1) return;
  for (int64_t y = rect.y0; y < rect.y1; ++y) {
    auto* row = reinterpret_cast<Pixel*>(picture.row(y));
    std::fill(row + rect.x0, row + rect.x1, pixel);
  }
}

// White over what is there, by coverage. Stops at the picture's edges.
void blend_white(Picture& picture, const LabelMask& mask, int64_t left, int64_t top) {
  const Rect rect = clipped({left, top, left + mask.width, top + mask.height}, picture);
  for (int64_t y = rect.y0; y < rect.y1; ++y) {
    const uint8_t* coverage = mask.coverage.data() + (y - top) * mask.width - left;
    uint8_t* row = picture.row(y);
    for (int64_t x = rect.x0; x < rect.x1; ++x)
      for (int64_t c = 0; c < 3; ++c) {
        const int under = row[x * 3 + c];
        row[x * 3 + c] = static_cast<uint8_t>(under + ((255 - under) * coverage[x] + 127) / 255);
      }
  }
}

// A line of `width` pixels around each edge; the edge's own pixel is in the middle, as
// cv2.rectangle places it.
void draw_frame(Picture& picture, const Rect& corners, int64_t width, Pixel pixel) {
  const int64_t before = width / 2;
  const int64_t after = width - before;
  const Rect outer{corners.x0 - before, corners.y0 - before, corners.x1 + after,
                   corners.y1 + after};
  fill(picture, {outer.x0, outer.y0, outer.x1, outer.y0 + width}, pixel);
  fill(picture, {outer.x0, outer.y1 - width, outer.x1, outer.y1}, pixel);
  fill(picture, {outer.x0, outer.y0, outer.x0 + width, outer.y1}, pixel);
  fill(picture, {outer.x1 - width, outer.y0, outer.x1, outer.y1}, pixel);
}

// To whole pixels; far outside is as good as far outside.
int64_t whole(double value) {
  constexpr double kFar = 1 << 24;
  return static_cast<int64_t>(std::clamp(value, -kFar, kFar));
}

std::optional<Rect> corners_of(const LabeledBox& box) {
  if (std::isnan(box.x1) || std::isnan(box.y1) || std::isnan(box.x2) || std::isnan(box.y2))
    return {};
  const auto [x0, x1] = std::minmax({whole(box.x1), whole(box.x2)});
  const auto [y0, y1] = std::minmax({whole(box.y1), whole(box.y2)});
  return Rect{x0, y0, x1, y1};
}

void draw_label(Picture& picture, const Rect& corners, const LabelMask& mask, int64_t margin,
                Pixel pixel) {
  const int64_t width = mask.width + 2 * margin;
  const int64_t left = std::max<int64_t>(std::min(corners.x0, picture.width() - width), 0);
  const bool above = corners.y0 - mask.height >= 0;
  const int64_t top = above ? corners.y0 - mask.height : std::max<int64_t>(corners.y0, 0);
  fill(picture, {left, top, left + width, top + mask.height}, pixel);
  blend_white(picture, mask, left + margin, top);
}

}  // namespace

Annotator::Annotator(DrawOptions options) : options_(std::move(options)) {}
Annotator::~Annotator() = default;
Annotator::Annotator(Annotator&&) noexcept = default;
Annotator& Annotator::operator=(Annotator&&) noexcept = default;

Color class_color(int64_t class_id) {
  constexpr auto kCount = static_cast<int64_t>(std::size(kClassColors));
  return kClassColors[std::abs(class_id % kCount)];
}

int64_t default_line_width(int64_t width, int64_t height) {
  // Python's round: halves go to the even neighbour, as nearbyint does.
  const double wanted = std::nearbyint(static_cast<double>(width + height + 3) / 2 * 0.003);
  return std::max<int64_t>(static_cast<int64_t>(wanted), 2);
}

Status Annotator::draw(Picture& picture, std::span<const LabeledBox> boxes) {
  if (picture.empty()) return error(Code::kInvalid, "cannot draw into an empty picture");
  const int64_t line_width =
      std::min(options_.line_width > 0 ? options_.line_width
                                       : default_line_width(picture.width(), picture.height()),
               kMaxLineWidth);
  const int64_t font_pixels = std::max(kFontPixelsPerLine * line_width, kMinFontPixels);
  Status status;
  for (const LabeledBox& box : boxes) {
    const auto corners = corners_of(box);
    if (!corners) continue;
    const Pixel pixel = pixel_of(box.color, picture);
    draw_frame(picture, *corners, line_width, pixel);
    if (box.label.empty() || !status.ok()) continue;
    if (!labels_) {
      auto maker = LabelMaker::create(options_.font);
      if (maker.ok())
        labels_ = std::make_unique<LabelMaker>(*std::move(maker));
      else
        status = std::move(maker).error();
    }
    if (!labels_) continue;
    const auto mask = labels_->mask(box.label, font_pixels);
    if (!mask.ok()) {
      status = mask.error();
      continue;
    }
    missing_glyphs_ |= (*mask)->missing > 0;
    draw_label(picture, *corners, **mask, line_width, pixel);
  }
  return status;
}

}  // namespace ferry::vision
