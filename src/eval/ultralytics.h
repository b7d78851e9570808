// Average precision as Ultralytics YOLOv5 v7.0 defines it (utils/metrics.py, ap_per_class), which
// its users compare models by: 101-point interpolation, ten IoU thresholds, precision and recall at
// the confidence where the mean F1 is best.
//
// Of detections with equal confidence the one added first comes first. Upstream leaves that open
// (numpy's default sort is not stable), as it does the place of the best F1 on a plateau, which it
// lets rounding decide: here it is the lowest confidence of the plateau.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "eval/matching.h"
#include "vision/boxes.h"

namespace ferry::eval {

inline constexpr size_t kIouCount = 10;       // 0.5, 0.55, … 0.95
inline constexpr size_t kCurvePoints = 1000;  // from 0 to 1

using Curve = std::vector<double>;  // [kCurvePoints]

// The confidence, or the recall, at which a curve has its value i.
double curve_point(size_t i);

// Upstream's smooth(): a box filter as long as `fraction` of the curve, whose ends repeat the first
// and the last value. The best F1 is sought on the mean smoothed by 0.1; plots use 0.05.
Curve smoothed(const Curve& curve, double fraction);

struct ClassScore {
  int32_t class_id = 0;
  int64_t truths = 0;                               // objects of this class
  double precision = 0, recall = 0, f1 = 0;         // at Report::best_confidence, IoU 0.5
  std::array<double, kIouCount> ap = {};            // 0 to 1
  int64_t true_positives = 0, false_positives = 0;  // at that confidence too
  // At IoU 0.5; zero for a class of which nothing was detected.
  Curve precision_curve, recall_curve, f1_curve;  // over confidence
  Curve pr_curve;                                 // precision over recall

  double ap50() const { return ap[0]; }
  double ap50_95() const;
};

// Means are over the classes that have objects. All numbers are zero when no detection found any.
struct UltralyticsReport {
  std::vector<ClassScore> classes;  // those that have objects, by id
  double precision = 0, recall = 0, f1 = 0, map50 = 0, map50_95 = 0;
  double best_confidence = 0;  // where the smoothed mean F1 is greatest
  double fitness = 0;          // 0.1 map50 + 0.9 map50_95: what training keeps the best of
};

class UltralyticsMetric {
 public:
  // One picture. Detections stand by falling confidence, as NMS gives them; boxes are in pixels of
  // the picture. REQUIRES: class ids of truths are not negative; no confidence is NaN.
  void add(std::span<const Truth> truths, std::span<const vision::Detection> detections);
  UltralyticsReport report() const;

 private:
  struct Scored {
    float confidence;
    int32_t class_id;
    uint16_t correct;  // a bit an IoU threshold
  };
  static void score_curves(std::span<const Scored> found, ClassScore& score);

  std::vector<Scored> scored_;
  std::vector<int64_t> truths_;  // by class
};

}  // namespace ferry::eval
