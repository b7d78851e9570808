// ferry against what PyTorch and Ultralytics answered for the same weights and pictures
// (FERRY_GOLDEN, FERRY_DATA).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "detect/network.h"
#include "ferry/ferry.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string folder(const char* variable, const char* fallback) {
  const char* value = std::getenv(variable);
  return value && *value ? value : fallback;
}
std::string data(const std::string& name) {
  return folder("FERRY_DATA", "../shared/data") + "/" + name;
}
std::string golden(const std::string& name) {
  return folder("FERRY_GOLDEN", "../shared/golden") + "/" + name;
}

// The floats of a C-ordered little-endian .npy file of format 1.0.
std::vector<float> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t header =
      10 + static_cast<unsigned char>(bytes.at(8)) + 256u * static_cast<unsigned char>(bytes.at(9));
  std::vector<float> values((bytes.size() - header) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + header, values.size() * sizeof(float));
  return values;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string file = golden(GetParam() + ".json");
    weights_ = data("weights/" + GetParam() + ".pt");
    if (!fs::exists(file) || !fs::exists(weights_)) {
      GTEST_SKIP() << "not checked against PyTorch: " << file << " or " << weights_
                   << " is not there";
    }
    std::ifstream stream(file);
    answers_ = json::parse(stream);
  }

  // Boxes within 0.5 px and confidences within 0.003 of Ultralytics' (or the given tolerances),
  // same count and classes.
  void expect_detections(const std::string& model, bool square_only, float box_tolerance,
                         float confidence_tolerance) {
    for (const auto& [key, answer] : answers_.at("detections").items()) {
      const size_t space = key.find(' ');
      const bool rect = key.substr(space + 1) == "rect";
      if (rect && square_only) continue;
      auto detector = Detector::load(model, {.fit = rect ? Fit::kRect : Fit::kSquare});
      ASSERT_TRUE(detector.ok()) << detector.error().message;
      const auto picture = read_image(data(key.substr(0, space)));
      ASSERT_TRUE(picture.ok()) << picture.error().message;
      const auto found = (*detector)->detect(
          picture->image,
          {.conf_threshold = answer.at("conf_thres"), .iou_threshold = answer.at("iou_thres")});
      ASSERT_TRUE(found.ok()) << found.error().message;
      EXPECT_EQ((*detector)->timing().input_height, answer.at("input_hw").at(0)) << key;
      EXPECT_EQ((*detector)->timing().input_width, answer.at("input_hw").at(1)) << key;
      const json& boxes = answer.at("boxes_xyxy_conf_cls");
      ASSERT_EQ(found->size(), boxes.size()) << key;
      for (size_t i = 0; i < boxes.size(); ++i) {
        for (size_t side = 0; side < 4; ++side) {
          EXPECT_NEAR((*found)[i].box[side], boxes[i][side].get<float>(), box_tolerance)
              << key << " box " << i;
        }
        EXPECT_NEAR((*found)[i].confidence, boxes[i][4].get<float>(), confidence_tolerance)
            << key << " box " << i;
        EXPECT_EQ((*found)[i].class_id, boxes[i][5].get<int>()) << key << " box " << i;
      }
    }
  }

  std::string weights_;
  json answers_;
};

TEST_P(Golden, BoxesEqualUltralytics) { expect_detections(weights_, false, 0.5f, 0.003f); }

TEST_P(Golden, ClassNamesAndStridesAreTheCheckpoints) {
  const auto network = detect::Network::load(weights_, {});
  ASSERT_TRUE(network.ok()) << network.error().message;
  const import::DetectorInfo& info = (*network)->info();
  ASSERT_EQ(info.names.size(), answers_.at("names").size());
  for (size_t i = 0; i < info.names.size(); ++i) {
    EXPECT_EQ(info.names[i], answers_.at("names").at(std::to_string(i)).get<std::string>());
  }
  EXPECT_EQ(info.strides, answers_.at("stride").get<std::vector<double>>());
  EXPECT_EQ((*network)->source().params_fused, answers_.at("params_fused").get<int64_t>());
}

TEST_P(Golden, TheFormulaPicturesRowsEqualPyTorchs) {
  auto network = detect::Network::load(weights_, {.input_height = 320, .input_width = 320});
  ASSERT_TRUE(network.ok()) << network.error().message;
  detect::Lane lane(*network);
  auto context = lane.context({1, 320, 320});
  ASSERT_TRUE(context.ok()) << context.error().message;
  std::vector<float> picture;
  for (int y = 0; y < 320; ++y) {
    for (int x = 0; x < 320; ++x) {
      for (int c = 0; c < 3; ++c) {
        picture.push_back(static_cast<float>((7 * y + 13 * x + 29 * c + (y * x) % 31) % 256) / 255);
      }
    }
  }
  ASSERT_TRUE(runtime::write_picture((*context)->input(0), 0, picture.data()).ok());
  ASSERT_TRUE((*context)->run().ok());
  const auto maps = (*network)->head_maps(**context, 0);
  const vision::RawHead head{maps, (*network)->info().nc};
  std::vector<float> rows(static_cast<size_t>(head.rows() * head.columns()));
  ASSERT_TRUE(vision::decode_rows(head, rows.data()).ok());
  const std::vector<float> want = read_npy(golden(answers_.at("formula_320").at("output_file")));
  ASSERT_EQ(rows.size(), want.size());
  float worst_box = 0, worst_score = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    float& worst = i % static_cast<size_t>(head.columns()) < 4 ? worst_box : worst_score;
    worst = std::max(worst, std::fabs(rows[i] - want[i]));
  }
  EXPECT_LE(worst_box, 2e-3f);
  EXPECT_LE(worst_score, 1e-4f);
}

INSTANTIATE_TEST_SUITE_P(Weights, Golden,
                         testing::Values("yolov5n_v61_coco80", "yolov5n_exp7_dwconv_coco80"),
                         [](const auto& row) { return row.param; });

using GoldenOnnx = Golden;
TEST_P(GoldenOnnx, BoxesOfTheHalfPrecisionExportEqualTheCheckpoints) {
  const std::string onnx = data("weights/yolov5n_v61_coco80_fp16_unsorted.onnx");
  if (!fs::exists(onnx)) GTEST_SKIP() << "not checked: " << onnx << " is not there";
  expect_detections(onnx, true, 1.0f, 0.01f);
}
INSTANTIATE_TEST_SUITE_P(Weights, GoldenOnnx, testing::Values("yolov5n_v61_coco80"),
                         [](const auto& row) { return row.param; });

class DetectorBatches : public testing::TestWithParam<bool> {};
TEST_P(DetectorBatches, AnswerAsSinglePicturesDo) {
  const std::string weights = data("weights/yolov5n_v61_coco80.pt");
  if (!fs::exists(weights)) GTEST_SKIP() << "not checked: " << weights << " is not there";
  auto detector = Detector::load(weights, {.fit = Fit::kSquare, .fixed_shape = GetParam()});
  ASSERT_TRUE(detector.ok()) << detector.error().message;
  const auto bus = read_image(data("images/bus.jpg")),
             men = read_image(data("images/two_men_1280x720.jpg"));
  ASSERT_TRUE(bus.ok() && men.ok());
  const Image images[] = {bus->image, men->image, bus->image};
  const auto batched = (*detector)->detect(images, {}, 2);
  ASSERT_TRUE(batched.ok()) << batched.error().message;
  for (size_t i = 0; i < std::size(images); ++i) {
    const auto single = (*detector)->detect(images[i]);
    ASSERT_TRUE(single.ok());
    ASSERT_EQ((*batched)[i].size(), single->size()) << i;
    for (size_t d = 0; d < single->size(); ++d) {
      EXPECT_EQ((*batched)[i][d].class_id, (*single)[d].class_id);
      EXPECT_NEAR((*batched)[i][d].confidence, (*single)[d].confidence, 1e-4f);
      for (size_t side = 0; side < 4; ++side)
        EXPECT_NEAR((*batched)[i][d].box[side], (*single)[d].box[side], 0.05f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shape, DetectorBatches, testing::Bool(),
                         [](const auto& row) { return row.param ? "fixed" : "any"; });

TEST(Detector, RefusesWhatItCannotUse) {
  EXPECT_EQ(Detector::load("no/such/model.pt").error().code, Code::kNotFound);
  const std::string weights = data("weights/yolov5n_v61_coco80.pt");
  if (!fs::exists(weights)) GTEST_SKIP() << "not checked: " << weights << " is not there";
  auto detector = Detector::load(weights);
  ASSERT_TRUE(detector.ok()) << detector.error().message;
  EXPECT_FALSE((*detector)->detect(Image{}).ok());
  const uint8_t pixel[3] = {};
  EXPECT_FALSE((*detector)->detect({pixel, 1, 1}, {.conf_threshold = 2}).ok());
  EXPECT_TRUE((*detector)->detect({pixel, 1, 1}).ok());
}

}  // namespace
}  // namespace ferry
