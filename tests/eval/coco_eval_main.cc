// coco_eval ANNOTATIONS.json PREDICTIONS.json: COCO's numbers of a results file, as one JSON
// object. For tests/eval/coco_test.py, which asks pycocotools about the same two files.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/coco.h"

namespace {

using ferry::eval::CocoMetric;
using ferry::eval::CocoReport;
using nlohmann::json;

struct Image {
  std::vector<ferry::eval::CocoTruth> truths;
  std::vector<ferry::eval::CocoDetection> detections;
};

json read(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("cannot open {}", path));
  return json::parse(file);
}

json evaluate(const json& annotations, const json& predictions) {
  std::vector<int64_t> ids;
  for (const json& c : annotations.at("categories")) ids.push_back(c.at("id"));
  std::ranges::sort(ids);
  const auto class_of = [&](int64_t category) {
    const auto at = std::ranges::lower_bound(ids, category);
    return at == ids.end() || *at != category ? -1 : static_cast<int32_t>(at - ids.begin());
  };
  std::map<int64_t, Image> images;
  for (const json& i : annotations.at("images")) images[i.at("id")];
  for (const json& a : annotations.at("annotations")) {
    images.at(a.at("image_id"))
        .truths.push_back({.box = a.at("bbox"),
                           .class_id = class_of(a.at("category_id")),
                           .area = a.at("area"),
                           .crowd = a.value("iscrowd", 0) != 0});
  }
  for (const json& p : predictions) {
    images.at(p.at("image_id"))
        .detections.push_back({.box = p.at("bbox"),
                               .class_id = class_of(p.at("category_id")),
                               .score = p.at("score")});
  }
  CocoMetric metric(static_cast<int64_t>(ids.size()));
  for (const auto& [id, image] : images) metric.add(id, image.truths, image.detections);
  const CocoReport r = metric.report();
  return {{"AP", r.ap},
          {"AP50", r.ap50},
          {"AP75", r.ap75},
          {"APs", r.ap_small},
          {"APm", r.ap_medium},
          {"APl", r.ap_large},
          {"AR1", r.ar1},
          {"AR10", r.ar10},
          {"AR100", r.ar100},
          {"ARs", r.ar_small},
          {"ARm", r.ar_medium},
          {"ARl", r.ar_large},
          {"class_ap", r.class_ap}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: coco_eval ANNOTATIONS.json PREDICTIONS.json\n", stderr);
    return 2;
  }
  try {
    fmt::print("{}\n", evaluate(read(argv[1]), read(argv[2])).dump());
  } catch (const std::exception& failure) {
    fmt::print(stderr, "coco_eval: {}\n", failure.what());
    return 1;
  }
  return 0;
}
