#include "eval/matching.h"

#include <algorithm>

namespace ferry::eval {
namespace {

constexpr float kEpsilon = 1e-7f;

float area(const vision::Box& b) { return (b.x2 - b.x1) * (b.y2 - b.y1); }

}  // namespace

IouTable::IouTable(std::span<const Truth> truths, std::span<const vision::Detection> detections)
    : detections_(detections.size()), values_(truths.size() * detections.size()) {
  for (size_t t = 0; t < truths.size(); ++t) {
    const vision::Box& a = truths[t].box;
    for (size_t d = 0; d < detections.size(); ++d) {
      const vision::Box& b = detections[d].box;
      const float width = std::max(0.0f, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
      const float height = std::max(0.0f, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
      const float both = width * height;
      values_[t * detections_ + d] = both / (area(a) + area(b) - both + kEpsilon);
    }
  }
}

}  // namespace ferry::eval
