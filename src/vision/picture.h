// A picture in memory: 8 bits a channel, three channels interleaved, rows from top to bottom.
// Everything in ferry that decodes, letterboxes, draws or encodes speaks of a `Picture` (owns its
// pixels) or of a `PictureView` (borrows somebody's, the public API among them). Gray, alpha and
// deeper samples end in the decoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"

namespace ferry::vision {

enum class PixelFormat : unsigned char {
  kBgr8,  // blue, green, red: what ferry's decoders produce, as OpenCV does
  kRgb8,  // red, green, blue
};

inline constexpr int64_t kBytesPerPixel = 3;

// Borrowed pixels; whoever made the view keeps them alive. Pixel (x, y) stands at data + y * stride
// + x * 3.
struct PictureView {
  const uint8_t* data = nullptr;
  int64_t width = 0;   // pixels
  int64_t height = 0;  // pixels
  int64_t stride = 0;  // bytes from one row to the next, at least width * 3
  PixelFormat format = PixelFormat::kBgr8;

  bool empty() const { return data == nullptr || width <= 0 || height <= 0; }
  const uint8_t* row(int64_t y) const { return data + y * stride; }
  const uint8_t* at(int64_t x, int64_t y) const { return row(y) + x * kBytesPerPixel; }
};

// Checks what a view from outside claims: data is there, sides are 1..kMaxPictureSide, the stride
// holds a row.
Status check_view(const PictureView& view);

inline constexpr int64_t kMaxPictureSide = int64_t{1} << 20;
inline constexpr int64_t kMaxPicturePixels = int64_t{1} << 31;

// Owned pixels; moves are cheap, a copy must be asked for (`clone`). The first row is aligned to 64
// bytes, so is every other (the stride is a multiple of 64), and at least 64 readable bytes follow
// the last pixel: vector code may read a whole register at the end of a row.
class Picture {
 public:
  Picture() = default;  // empty: no pixels, 0 x 0

  // Pixels are not initialised. Fails with kInvalid for sides outside 1..kMaxPictureSide, with
  // kNoMemory for more than kMaxPicturePixels or when there is no memory.
  static Result<Picture> create(int64_t width, int64_t height,
                                PixelFormat format = PixelFormat::kBgr8);
  // A copy of borrowed pixels, in the view's format.
  static Result<Picture> copy_of(const PictureView& view);
  Result<Picture> clone() const { return copy_of(view()); }

  Picture(Picture&& other) noexcept { *this = std::move(other); }
  Picture& operator=(Picture&& other) noexcept;

  bool empty() const { return !pixels_; }
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int64_t stride() const { return stride_; }
  PixelFormat format() const { return format_; }
  uint8_t* data() { return pixels_.get(); }
  const uint8_t* data() const { return pixels_.get(); }
  uint8_t* row(int64_t y) { return data() + y * stride_; }
  const uint8_t* row(int64_t y) const { return data() + y * stride_; }

  // Valid while this picture lives and is not moved from.
  PictureView view() const { return {data(), width_, height_, stride_, format_}; }
  operator PictureView() const { return view(); }  // NOLINT: implicit by design

 private:
  struct Free {
    void operator()(uint8_t* pixels) const;
  };
  std::unique_ptr<uint8_t[], Free> pixels_;
  int64_t width_ = 0;
  int64_t height_ = 0;
  int64_t stride_ = 0;
  PixelFormat format_ = PixelFormat::kBgr8;
};

}  // namespace ferry::vision
