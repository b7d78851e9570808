#include "vision/boxes.h"

#include <algorithm>
#include <cmath>

namespace ferry::vision {
namespace {

// std::clamp, but NaN passes: torch's clamp_.
float cut(float value, float high) {
  if (value < 0) return 0;
  return value > high ? high : value;
}

}  // namespace

Box box_from_center(float center_x, float center_y, float width, float height) {
  return {center_x - width / 2, center_y - height / 2, center_x + width / 2, center_y + height / 2};
}

bool is_finite(const Box& box) {
  return std::isfinite(box.x1) && std::isfinite(box.y1) && std::isfinite(box.x2) &&
         std::isfinite(box.y2);
}

float intersection_over_union(const Box& a, const Box& b) {
  const float width = std::max(0.0f, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  const float height = std::max(0.0f, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  const float intersection = width * height;
  const float area_a = (a.x2 - a.x1) * (a.y2 - a.y1);
  const float area_b = (b.x2 - b.x1) * (b.y2 - b.y1);
  return intersection / (area_a + area_b - intersection);
}

BoxScale box_scale(const LetterboxPlan& plan) {
  const double input_w = static_cast<double>(plan.input_width);
  const double input_h = static_cast<double>(plan.input_height);
  const double picture_w = static_cast<double>(plan.picture_width);
  const double picture_h = static_cast<double>(plan.picture_height);
  BoxScale scale;
  scale.picture_width = plan.picture_width;
  scale.picture_height = plan.picture_height;
  if (plan.ratio_x != plan.ratio_y) {
    scale.gain_x = plan.ratio_x;
    scale.gain_y = plan.ratio_y;
    return scale;
  }
  scale.gain_x = scale.gain_y = std::min(input_h / picture_h, input_w / picture_w);
  scale.pad_x = (input_w - picture_w * scale.gain_x) / 2;
  scale.pad_y = (input_h - picture_h * scale.gain_y) / 2;
  return scale;
}

void scale_boxes(const BoxScale& scale, std::span<Detection> detections) {
  // torch rounds the scalars to the tensor's type before it subtracts and divides.
  const float pad_x = static_cast<float>(scale.pad_x);
  const float pad_y = static_cast<float>(scale.pad_y);
  const float gain_x = static_cast<float>(scale.gain_x);
  const float gain_y = static_cast<float>(scale.gain_y);
  const float width = static_cast<float>(scale.picture_width);
  const float height = static_cast<float>(scale.picture_height);
  for (Detection& detection : detections) {
    Box& box = detection.box;
    box.x1 = cut((box.x1 - pad_x) / gain_x, width);
    box.y1 = cut((box.y1 - pad_y) / gain_y, height);
    box.x2 = cut((box.x2 - pad_x) / gain_x, width);
    box.y2 = cut((box.y2 - pad_y) / gain_y, height);
  }
}

}  // namespace ferry::vision
