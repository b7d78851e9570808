#include "eval/evaluation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "eval/predictions_json.h"

namespace ferry::eval {
namespace {

std::vector<CocoTruth> coco_truths_of(const data::Sample& sample) {
  const auto width = static_cast<double>(sample.width);
  const auto height = static_cast<double>(sample.height);
  std::vector<CocoTruth> truths;
  for (const data::Label& label : sample.labels) {
    const double w = label.width * width, h = label.height * height;
    truths.push_back({.box = {label.x * width - w / 2, label.y * height - h / 2, w, h},
                      .class_id = label.class_id,
                      .area = label.area > 0 ? label.area : w * h,
                      .crowd = label.crowd});
  }
  return truths;
}

}  // namespace

std::vector<Truth> truths_of(const data::Sample& sample) {
  const auto width = static_cast<double>(sample.width);
  const auto height = static_cast<double>(sample.height);
  std::vector<Truth> truths;
  for (const data::Label& label : sample.labels) {
    if (label.crowd) continue;
    const auto edge = [](double center, double size, double side, int sign) {
      return static_cast<float>(std::clamp((center + sign * size / 2) * side, 0.0, side));
    };
    truths.push_back(
        {{edge(label.x, label.width, width, -1), edge(label.y, label.height, height, -1),
          edge(label.x, label.width, width, 1), edge(label.y, label.height, height, 1)},
         label.class_id});
  }
  return truths;
}

Evaluation::Evaluation(const data::Dataset& dataset)
    : dataset_(dataset),
      coco_(static_cast<int64_t>(dataset.names.size())),
      confusion_(static_cast<int64_t>(dataset.names.size())) {}

void Evaluation::add(size_t sample, std::span<const vision::Detection> detections) {
  const data::Sample& picture = dataset_.samples[sample];
  const std::vector<Truth> truths = truths_of(picture);
  ++images_;
  instances_ += static_cast<int64_t>(truths.size());
  ultralytics_.add(truths, detections);
  confusion_.add(truths, detections);
  std::vector<CocoDetection> boxes;
  for (const vision::Detection& detection : detections) {
    const CocoBox box = coco_box(detection);
    boxes.push_back({.box = box.box, .class_id = detection.class_id, .score = box.score});
  }
  coco_.add(picture.image_id, coco_truths_of(picture), boxes);
}

Report Evaluation::report() const {
  return {.images = images_,
          .instances = instances_,
          .ultralytics = ultralytics_.report(),
          .coco = coco_.report()};
}

std::string report_json(const Report& report, const PredictTotals& totals,
                        std::span<const std::string> names) {
  const UltralyticsReport& u = report.ultralytics;
  const CocoReport& c = report.coco;
  nlohmann::ordered_json per_class = nlohmann::ordered_json::array();
  for (const ClassScore& score : u.classes) {
    const auto id = static_cast<size_t>(score.class_id);
    per_class.push_back({{"class_id", score.class_id},
                         {"class_name", names[id]},
                         {"instances", score.truths},
                         {"precision", score.precision},
                         {"recall", score.recall},
                         {"f1", score.f1},
                         {"map50", score.ap50()},
                         {"map50_95", score.ap50_95()},
                         {"coco_AP", c.class_ap[id]},
                         {"coco_AP50", c.class_ap50[id]}});
  }
  const auto pictures = static_cast<double>(std::max<int64_t>(totals.pictures, 1));
  const nlohmann::ordered_json all = {{"images", report.images},
                                      {"instances", report.instances},
                                      {"precision", u.precision},
                                      {"recall", u.recall},
                                      {"f1", u.f1},
                                      {"best_confidence", u.best_confidence},
                                      {"map50", u.map50},
                                      {"map50_95", u.map50_95},
                                      {"fitness", u.fitness},
                                      {"coco",
                                       {{"AP", c.ap},
                                        {"AP50", c.ap50},
                                        {"AP75", c.ap75},
                                        {"APs", c.ap_small},
                                        {"APm", c.ap_medium},
                                        {"APl", c.ap_large},
                                        {"AR1", c.ar1},
                                        {"AR10", c.ar10},
                                        {"AR100", c.ar100},
                                        {"ARs", c.ar_small},
                                        {"ARm", c.ar_medium},
                                        {"ARl", c.ar_large}}},
                                      {"per_class", per_class},
                                      {"speed_ms",
                                       {{"preprocess", totals.preprocess_ms / pictures},
                                        {"inference", totals.inference_ms / pictures},
                                        {"nms", totals.postprocess_ms / pictures},
                                        {"decode", totals.decode_ms / pictures}}},
                                      {"unread", totals.unread}};
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string report_csv(const Report& report, std::span<const std::string> names) {
  const UltralyticsReport& u = report.ultralytics;
  std::string text =
      "class,images,instances,precision,recall,f1,map50,map50_95,coco_AP,coco_AP50\n";
  text +=
      fmt::format("all,{},{},{},{},{},{},{},{},{}\n", report.images, report.instances, u.precision,
                  u.recall, u.f1, u.map50, u.map50_95, report.coco.ap, report.coco.ap50);
  for (const ClassScore& score : u.classes) {
    const auto id = static_cast<size_t>(score.class_id);
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_field(names[id]), report.images,
                        score.truths, score.precision, score.recall, score.f1, score.ap50(),
                        score.ap50_95(), report.coco.class_ap[id], report.coco.class_ap50[id]);
  }
  return text;
}

}  // namespace ferry::eval
