// What `ferry val` says about a network: both metrics side by side and the confusion matrix,
// gathered picture by picture.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "eval/coco.h"
#include "eval/confusion.h"
#include "eval/predict.h"
#include "eval/ultralytics.h"

namespace ferry::eval {

struct Report {
  int64_t images = 0, instances = 0;  // evaluated; crowds are no instances
  UltralyticsReport ultralytics;
  CocoReport coco;
};

class Evaluation {
 public:
  // `dataset` is borrowed.
  explicit Evaluation(const data::Dataset& dataset);

  // One picture's detections, in its pixels, by falling confidence.
  void add(size_t sample, std::span<const vision::Detection> detections);

  Report report() const;
  const ConfusionMatrix& confusion() const { return confusion_; }

 private:
  const data::Dataset& dataset_;
  int64_t images_ = 0, instances_ = 0;
  UltralyticsMetric ultralytics_;
  CocoMetric coco_;
  ConfusionMatrix confusion_;
};

// The objects of a sample, in pixels of its picture; without crowds.
std::vector<Truth> truths_of(const data::Sample& sample);

// One JSON object: images, instances, precision, recall, map50, map50_95, fitness, coco {AP, …},
// per_class [{…}], speed_ms {preprocess, inference, nms} (means of a picture).
std::string report_json(const Report& report, const PredictTotals& totals,
                        std::span<const std::string> names);
// A line a class, and `all` first.
std::string report_csv(const Report& report, std::span<const std::string> names);

}  // namespace ferry::eval
