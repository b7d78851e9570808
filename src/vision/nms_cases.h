// Reads tests/data/nms/*.json (tests/tools/make_nms_cases.py): rows, options and what they give.
// Tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vision/head_decode.h"

namespace ferry::vision::testing {

// A [rows, columns] matrix that owns its values.
struct Rows {
  std::vector<float> values;
  int64_t columns = 0;

  int64_t rows() const { return static_cast<int64_t>(values.size()) / columns; }
  DecodedRows view() const { return {values.data(), rows(), columns, columns, RowType::kF32}; }
};

// The script's unit_noise.
inline float unit_noise(uint32_t row, uint32_t column, uint32_t seed) {
  uint32_t v = row * 2654435761u + column * 2246822519u + seed * 3266489917u;
  v ^= v >> 15;
  v *= 2246822519u;
  v ^= v >> 13;
  v *= 3266489917u;
  v ^= v >> 16;
  return static_cast<float>(v >> 8) * 0x1p-24f;
}

// The script's formula_rows.
inline Rows formula_rows(int64_t count, int64_t classes, uint32_t seed, float spread) {
  Rows rows{std::vector<float>(count * (5 + classes)), 5 + classes};
  for (int64_t r = 0; r < count; ++r) {
    const auto noise = [&](int64_t column) {
      return unit_noise(static_cast<uint32_t>(r), static_cast<uint32_t>(column), seed);
    };
    float* row = &rows.values[r * rows.columns];
    for (int64_t c = 0; c < rows.columns; ++c) row[c] = noise(c);
    for (int64_t axis = 0; axis < 2; ++axis) {
      const float grid = static_cast<float>(static_cast<int>(noise(axis) * 8)) * 64;
      row[axis] = grid + noise(rows.columns + axis) * spread;
      row[2 + axis] = noise(2 + axis) * 128;
    }
  }
  return rows;
}

// A little-endian fp32 .npy file, C order; its last axis becomes the columns.
inline std::optional<Rows> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < 10 || bytes.compare(1, 5, "NUMPY") != 0 || bytes[6] != 1) return std::nullopt;
  const size_t header = static_cast<uint8_t>(bytes[8]) | static_cast<uint8_t>(bytes[9]) << 8;
  const std::string text = bytes.substr(10, header);
  const size_t comma = text.rfind(',', text.find(')') - 1);
  if (text.find("'<f4'") == std::string::npos || comma == std::string::npos) return std::nullopt;
  Rows rows;
  rows.columns = std::atoll(text.c_str() + comma + 1);
  rows.values.resize((bytes.size() - 10 - header) / sizeof(float));
  std::memcpy(rows.values.data(), bytes.data() + 10 + header, rows.values.size() * sizeof(float));
  return rows;
}

inline std::string golden_path(const std::string& name) {
  const char* root = std::getenv("FERRY_GOLDEN");
  return std::string(root ? root : "../shared/golden") + "/" + name;
}

inline nlohmann::json read_cases(const std::string& name) {
  const std::string path = "tests/data/nms/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path << " is missing: run from the repository's root";
  return file ? nlohmann::json::parse(file) : nlohmann::json::array();
}

inline NmsOptions options_of(const nlohmann::json& item) {
  const nlohmann::json& o = item.at("options");
  NmsOptions options;
  options.conf_threshold = o.value("conf_threshold", options.conf_threshold);
  options.iou_threshold = o.value("iou_threshold", options.iou_threshold);
  options.multi_label = o.value("multi_label", false);
  options.agnostic = o.value("agnostic", false);
  options.classes = o.value("classes", std::vector<int32_t>{});
  options.max_detections = o.value("max_det", options.max_detections);
  options.max_candidates = o.value("max_nms", options.max_candidates);
  return options;
}

inline Rows inline_rows(const nlohmann::json& item) {
  Rows rows;
  for (const auto& row : item.at("rows")) {
    rows.columns = static_cast<int64_t>(row.size());
    for (double value : row) rows.values.push_back(static_cast<float>(value));
  }
  return rows;
}

inline std::vector<Detection> expected(const nlohmann::json& item) {
  std::vector<Detection> detections;
  for (const auto& row : item.at("expect")) {
    const auto value = [&](int i) { return static_cast<float>(row[i].get<double>()); };
    detections.push_back(
        {{value(0), value(1), value(2), value(3)}, value(4), row[5].get<int32_t>()});
  }
  return detections;
}

inline std::string text(const Detection& d) {
  return fmt::format("[{} {} {} {}] {} class {}", d.box.x1, d.box.y1, d.box.x2, d.box.y2,
                     d.confidence, d.class_id);
}

// Same number, order and classes; coordinates within `pixels`, confidences within `confidence`.
inline void expect_equal(const std::vector<Detection>& got, const std::vector<Detection>& want,
                         float pixels, float confidence, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const Box& a = got[i].box;
    const Box& b = want[i].box;
    const float off = std::max(std::max(std::abs(a.x1 - b.x1), std::abs(a.y1 - b.y1)),
                               std::max(std::abs(a.x2 - b.x2), std::abs(a.y2 - b.y2)));
    ASSERT_TRUE(got[i].class_id == want[i].class_id && off <= pixels &&
                std::abs(got[i].confidence - want[i].confidence) <= confidence)
        << what << ", detection " << i << ": " << text(got[i]) << " instead of " << text(want[i]);
  }
}

}  // namespace ferry::vision::testing
