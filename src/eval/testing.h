// What the tests of evaluation share: cases that generators wrote, and objects in short form.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/matching.h"
#include "vision/boxes.h"

namespace ferry::eval {

// tests/data/eval/<name>.json; written by tests/tools/make_eval_cases.py and
// make_ultralytics_cases.py. Null, and a failure, when it is missing.
inline nlohmann::json eval_case(const std::string& name) {
  const std::string path = "tests/data/eval/" + name + ".json";
  std::ifstream file(path);
  if (!file) {
    ADD_FAILURE() << path << " is missing: run from the repository's root";
    return {};
  }
  return nlohmann::json::parse(file);
}

// Rows of [class, x1, y1, x2, y2].
inline std::vector<Truth> truths_of(const nlohmann::json& rows) {
  std::vector<Truth> truths;
  for (const nlohmann::json& t : rows) truths.push_back({{t[1], t[2], t[3], t[4]}, t[0]});
  return truths;
}

// Rows of [class, confidence, x1, y1, x2, y2].
inline std::vector<vision::Detection> detections_of(const nlohmann::json& rows) {
  std::vector<vision::Detection> detections;
  for (const nlohmann::json& d : rows) {
    detections.push_back({{d[2], d[3], d[4], d[5]}, d[1], d[0]});
  }
  return detections;
}

}  // namespace ferry::eval
