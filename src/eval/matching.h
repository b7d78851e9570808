// Which detection found which object, as Ultralytics YOLOv5 v7.0 decides it (val.py, process_batch;
// utils/metrics.py, ConfusionMatrix and box_iou).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "vision/boxes.h"

namespace ferry::eval {

// An object that is in the picture.
struct Truth {
  vision::Box box;  // pixels of the picture
  int32_t class_id = 0;
};

// [truths][detections], in fp32: intersection / (union + 1e-7).
class IouTable {
 public:
  IouTable(std::span<const Truth> truths, std::span<const vision::Detection> detections);
  float at(size_t truth, size_t detection) const {
    return values_[truth * detections_ + detection];
  }

 private:
  size_t detections_;
  std::vector<float> values_;
};

enum class Choose : unsigned char {
  kEarliest,  // of the detections that chose one object the first: the most confident (mAP)
  kClosest,   // the one with the highest IoU, of equals the last (confusion matrix)
};

// Per detection the truth it found, or -1. A detection chooses the truth with the highest IoU among
// those for which `fits(truth, detection, iou)` holds; a truth keeps one of the detections that
// chose it, and the others go without: they do not choose again.
//
// Of equal IoUs the later truth counts: upstream sorts with numpy and reverses. numpy's default
// sort is not stable, so upstream's own choice may differ with numpy's version; ours is that of a
// stable sort.
template <class Fits>
std::vector<int64_t> match(const IouTable& iou, size_t truths, size_t detections, Choose choose,
                           const Fits& fits) {
  std::vector<int64_t> found(detections, -1);
  std::vector<int64_t> taker(truths, -1);
  for (size_t d = 0; d < detections; ++d) {
    int64_t best = -1;
    for (size_t t = 0; t < truths; ++t) {
      if (!fits(t, d, iou.at(t, d))) continue;
      if (best < 0 || iou.at(t, d) >= iou.at(static_cast<size_t>(best), d)) {
        best = static_cast<int64_t>(t);
      }
    }
    if (best < 0) continue;
    int64_t& other = taker[static_cast<size_t>(best)];
    if (other >= 0) {
      const bool closer = iou.at(static_cast<size_t>(best), d) >=
                          iou.at(static_cast<size_t>(best), static_cast<size_t>(other));
      if (choose == Choose::kEarliest || !closer) continue;
      found[static_cast<size_t>(other)] = -1;
    }
    other = static_cast<int64_t>(d);
    found[d] = best;
  }
  return found;
}

}  // namespace ferry::eval
