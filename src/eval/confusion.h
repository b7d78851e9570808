// Which classes are taken for which: Ultralytics' confusion matrix (utils/metrics.py).
//
// One thing differs: upstream forgets false positives in pictures where nothing at all matched, and
// in pictures without objects. Here they are counted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/matching.h"
#include "vision/boxes.h"

namespace ferry::eval {

class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t classes, double conf_threshold = 0.25,
                           double iou_threshold = 0.45)
      : classes_(classes),
        conf_threshold_(static_cast<float>(conf_threshold)),
        iou_threshold_(static_cast<float>(iou_threshold)),
        counts_(static_cast<size_t>((classes + 1) * (classes + 1))) {}

  // One picture; boxes in its pixels. Detections at or below the threshold do not count.
  // REQUIRES: class ids are 0 to classes - 1.
  void add(std::span<const Truth> truths, std::span<const vision::Detection> detections);

  int64_t classes() const { return classes_; }
  // Objects of class `truth` that were taken for `predicted`; `classes()` stands for the
  // background, in either place.
  int64_t at(int64_t predicted, int64_t truth) const {
    return counts_[static_cast<size_t>(predicted * (classes_ + 1) + truth)];
  }
  int64_t true_positives(int64_t id) const { return at(id, id); }
  // Detections as `id` of something else, or of nothing.
  int64_t false_positives(int64_t id) const;

 private:
  int64_t& cell(int64_t predicted, int64_t truth) {
    return counts_[static_cast<size_t>(predicted * (classes_ + 1) + truth)];
  }

  int64_t classes_;
  float conf_threshold_, iou_threshold_;
  std::vector<int64_t> counts_;
};

}  // namespace ferry::eval
