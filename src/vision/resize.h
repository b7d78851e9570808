// Resizes a picture, bit for bit as OpenCV does (modules/imgproc/src/resize.cpp). Only what YOLOv5
// loads datasets with; what goes into a network is resized by letterbox.h in one pass.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "vision/picture.h"

namespace ferry::vision {

// INTER_AREA: each new pixel is the mean of the area it covers. In the picture's format. Fails with
// kInvalid when a side would grow or is below 1, or the view breaks check_view.
Result<Picture> shrink(const PictureView& picture, int64_t width, int64_t height);

// INTER_LINEAR, to any size. In the picture's format. Fails with kInvalid for sides outside
// 1..kMaxPictureSide, or a view that breaks check_view.
Result<Picture> resize_linear(const PictureView& picture, int64_t width, int64_t height);

}  // namespace ferry::vision
