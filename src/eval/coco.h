// COCO's detection metric, as pycocotools' COCOeval computes it for boxes (cocoeval.py): ten IoU
// thresholds, 101 recall points, four ranges of area, at most 1, 10 or 100 detections a picture and
// class. Crowd regions take any number of detections and count for nothing.
//
// One thing differs: pycocotools takes a detection that found the annotation with id 0 for one that
// found nothing (it numbers from 1 and uses 0 for "none"). Here annotations have no ids.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::eval {

using CocoRect = std::array<double, 4>;  // x, y, width, height in pixels

struct CocoTruth {
  CocoRect box = {};
  int32_t class_id = 0;
  double area = 0;  // of the annotation (its segmentation's), pixels
  bool crowd = false;
};

struct CocoDetection {
  CocoRect box = {};
  int32_t class_id = 0;
  double score = 0;
};

// -1 stands for "there are no such objects", as in pycocotools.
struct CocoReport {
  double ap = -1, ap50 = -1, ap75 = -1;                 // 100 detections, all areas
  double ap_small = -1, ap_medium = -1, ap_large = -1;  // below 32^2, below 96^2, above
  double ar1 = -1, ar10 = -1, ar100 = -1;               // by most detections, all areas
  double ar_small = -1, ar_medium = -1, ar_large = -1;  // 100 detections
  std::vector<double> class_ap, class_ap50;             // one a class
};

// Pictures may come in any order: of detections with equal scores the one of the lower image id
// comes first, as in pycocotools.
class CocoMetric {
 public:
  explicit CocoMetric(int64_t classes);

  // One picture; each id once. Scores are finite; what has a class below 0 or from `classes` on
  // does not count, as pycocotools leaves out categories that are not evaluated. Any number of
  // detections may come, in any order; kept are 100 a class, some 40 bytes each.
  void add(int64_t image_id, std::span<const CocoTruth> truths,
           std::span<const CocoDetection> detections);
  CocoReport report() const;

 private:
  static constexpr size_t kAreas = 4;        // all, small, medium, large
  static constexpr size_t kThresholds = 10;  // IoU 0.5, 0.55, … 0.95

  // What became of one detection in one range of areas: bits, one an IoU threshold.
  struct Judged {
    double score = 0;
    int64_t image_id = 0;
    int32_t rank = 0;  // among its picture's and class's, by falling score
    std::array<uint16_t, kAreas> matched = {};
    std::array<uint16_t, kAreas> ignored = {};
  };
  struct PerClass {
    std::vector<Judged> judged;
    std::array<int64_t, kAreas> truths = {};  // that are not ignored
  };

  // -1 where there are no truths.
  struct Scored {
    double ap = -1;
    std::array<double, 3> recall = {-1, -1, -1};  // of the 1, 10, 100 best of each picture
  };

  static Scored score(std::span<const Judged> sorted, int64_t truths, size_t area,
                      size_t threshold);
  void add_class(int64_t image_id, std::span<const CocoTruth> truths,
                 std::span<const CocoDetection> detections, PerClass& into);

  std::vector<PerClass> classes_;
};

}  // namespace ferry::eval
