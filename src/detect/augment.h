// Test-time augmentation as Ultralytics YOLOv5 v7.0 does it (models/yolo.py, `_forward_augment`):
// the picture at scales 1, 0.83 mirrored, and 0.67; boxes brought back to scale 1; the largest
// scale's smallest and the smallest scale's largest cells left out.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "detect/network.h"
#include "vision/nms.h"

namespace ferry::detect {

// `input` is one letterboxed picture, [height, width, 3] floats. Adds the milliseconds of scaling
// and of the network.
Result<std::vector<vision::Detection>> detect_augmented(Lane& lane, std::span<const float> input,
                                                        int64_t height, int64_t width,
                                                        const vision::NmsOptions& options,
                                                        double& preprocess_ms,
                                                        double& inference_ms);

}  // namespace ferry::detect
