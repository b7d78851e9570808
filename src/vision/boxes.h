// Boxes and detections, and the way back from the network's input to the picture, as Ultralytics
// YOLOv5 v7.0 computes them (utils/general.py: xywh2xyxy, scale_boxes, clip_boxes).
#pragma once

#include <cstdint>
#include <span>

#include "vision/letterbox.h"

namespace ferry::vision {

// Corners in pixels, x to the right, y down; x1 <= x2 and y1 <= y2 for every box of a network.
struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  bool operator==(const Box&) const = default;
};

struct Detection {
  Box box;
  float confidence = 0;  // objectness times class score, 0 to 1
  int32_t class_id = 0;
  bool operator==(const Detection&) const = default;
};

Box box_from_center(float center_x, float center_y, float width, float height);

bool is_finite(const Box& box);

// Intersection over union as torchvision computes it in fp32; NaN when both boxes are empty.
float intersection_over_union(const Box& a, const Box& b);

// Input pixels to picture pixels: (coordinate - pad) / gain, then cut to the picture.
struct BoxScale {
  double gain_x = 1, gain_y = 1;  // input / picture
  double pad_x = 0, pad_y = 0;    // input pixels
  int64_t picture_width = 0, picture_height = 0;
};

// What upstream's scale_boxes derives from the two sizes alone. Its border can be half a pixel off
// the plan's (which is whole pixels), and boxes must equal upstream's, so the plan's is not used.
// A stretched picture (LetterboxMode::kStretch) has a gain for each side, and no border.
BoxScale box_scale(const LetterboxPlan& plan);

// In place, in fp32. NaN stays NaN.
void scale_boxes(const BoxScale& scale, std::span<Detection> detections);

}  // namespace ferry::vision
