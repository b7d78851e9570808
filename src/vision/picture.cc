#include "vision/picture.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace ferry::vision {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Status check_view(const PictureView& view) {
  if (view.data == nullptr) return error(Code::kInvalid, "picture has no pixels (data is null)");
  if (view.width < 1 || view.height < 1 || view.width > kMaxPictureSide ||
      view.height > kMaxPictureSide)
    return error(Code::kInvalid, "picture is {} x {}, sides must be 1 to {}", view.width,
                 view.height, kMaxPictureSide);
  if (view.stride < view.width * kBytesPerPixel)
    return error(Code::kInvalid, "picture is {} pixels wide, a row needs {} bytes, stride is {}",
                 view.width, view.width * kBytesPerPixel, view.stride);
  return {};
}

void Picture::Free::operator()(uint8_t* pixels) const { std::free(pixels); }

Picture& Picture::operator=(Picture&& other) noexcept {
  pixels_ = std::move(other.pixels_);
  width_ = std::exchange(other.width_, 0);
  height_ = std::exchange(other.height_, 0);
  stride_ = std::exchange(other.stride_, 0);
  format_ = other.format_;
  return *this;
}

Result<Picture> Picture::create(int64_t width, int64_t height, PixelFormat format) {
  if (width < 1 || height < 1 || width > kMaxPictureSide || height > kMaxPictureSide)
    return error(Code::kInvalid, "cannot make a picture of {} x {}, sides must be 1 to {}", width,
                 height, kMaxPictureSide);
  if (width * height > kMaxPicturePixels)
    return error(Code::kNoMemory, "a picture of {} x {} has more than {} pixels", width, height,
                 kMaxPicturePixels);
  const int64_t stride = aligned(width * kBytesPerPixel);
  const int64_t size = stride * height + kAlignment;
  auto* pixels = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, static_cast<size_t>(size)));
  if (pixels == nullptr)
    return error(Code::kNoMemory, "no memory for a picture of {} x {} ({} MiB)", width, height,
                 size >> 20);
  Picture picture;
  picture.pixels_.reset(pixels);
  picture.width_ = width;
  picture.height_ = height;
  picture.stride_ = stride;
  picture.format_ = format;
  return picture;
}

Result<Picture> Picture::copy_of(const PictureView& view) {
  FERRY_CHECK_OK(check_view(view));
  FERRY_TRY(copy, create(view.width, view.height, view.format));
  for (int64_t y = 0; y < view.height; ++y)
    std::memcpy(copy.row(y), view.row(y), static_cast<size_t>(view.width * kBytesPerPixel));
  return copy;
}

}  // namespace ferry::vision
