// Makes a picture smaller by averaging the area that each new pixel covers, bit for bit as
// OpenCV's resize with INTER_AREA does (modules/imgproc/src/resize.cpp): what YOLOv5's validation
// loads large pictures with.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "vision/picture.h"

namespace ferry::vision {

// The picture at `width` x `height` pixels, in its format. Fails with kInvalid when a side would
// grow or is below 1, or the view breaks check_view.
Result<Picture> shrink(const PictureView& picture, int64_t width, int64_t height);

}  // namespace ferry::vision
