#include "eval/confusion.h"

namespace ferry::eval {

void ConfusionMatrix::add(std::span<const Truth> truths,
                          std::span<const vision::Detection> detections) {
  std::vector<vision::Detection> confident;
  for (const vision::Detection& d : detections) {
    if (d.confidence > conf_threshold_) confident.push_back(d);
  }
  const IouTable iou(truths, confident);
  const std::vector<int64_t> found =
      match(iou, truths.size(), confident.size(), Choose::kClosest,
            [&](size_t, size_t, float value) { return value > iou_threshold_; });
  std::vector<bool> seen(truths.size(), false);
  for (size_t d = 0; d < confident.size(); ++d) {
    if (found[d] < 0) {
      ++cell(confident[d].class_id, classes_);
      continue;
    }
    const auto t = static_cast<size_t>(found[d]);
    seen[t] = true;
    ++cell(confident[d].class_id, truths[t].class_id);
  }
  for (size_t t = 0; t < truths.size(); ++t) {
    if (!seen[t]) ++cell(classes_, truths[t].class_id);
  }
}

int64_t ConfusionMatrix::false_positives(int64_t id) const {
  int64_t sum = 0;
  for (int64_t truth = 0; truth <= classes_; ++truth) sum += truth == id ? 0 : at(id, truth);
  return sum;
}

}  // namespace ferry::eval
