// Real checkpoints against what PyTorch 2 and Ultralytics' code computed from them (FERRY_GOLDEN),
// layer by layer.
#include <gtest/gtest.h>

#include "import/torch/import_torch.h"
#include "import/torch/test_support.h"
#include "ops/evaluate.h"

namespace ferry::import {
namespace {

using namespace test;

struct Statistics {
  double mean = 0, deviation = 0, min = 0, max = 0;
};

Statistics statistics(std::span<const float> values) {
  double sum = 0, squares = 0, low = values[0], high = values[0];
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
    low = std::min<double>(low, v);
    high = std::max<double>(high, v);
  }
  const auto n = static_cast<double>(values.size());
  const double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, (squares - n * mean * mean) / (n - 1))), low, high};
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, EveryLayerHasTheStatisticsThatPyTorchComputes) {
  const std::string name = GetParam();
  FERRY_NEED_FILE(data_file("weights/" + name + ".pt"), "layer statistics of a real checkpoint");
  FERRY_NEED_FILE(golden_file(name + ".json"), "layer statistics of a real checkpoint");
  const auto golden = read_json(golden_file(name + ".json"));
  auto model = import_torch(data_file("weights/" + name + ".pt"), {.height = 320, .width = 320});
  ASSERT_TRUE(model.ok()) << model.error().message;

  const auto& layers = golden["formula_320"]["layers"];
  std::vector<graph::ValueId> keep;
  for (const auto& layer : layers) {
    keep.push_back(
        graph::find_value(model->graph, fmt::format("model.{}", layer["layer"].get<int>())));
    ASSERT_NE(keep.back(), graph::kNone) << layer["layer"];
  }
  const graph::Tensor picture = formula_picture({1, 3, 320, 320});
  auto values = ops::evaluate(model->graph, {&picture, 1}, keep);
  ASSERT_TRUE(values.ok()) << values.error().message;

  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& expected = layers[i];
    const graph::Tensor& value = (*values)[i + 1];
    const std::string where = fmt::format("layer {} {}", i, expected["type"].get<std::string>());
    ASSERT_EQ(value.shape(), expected["shape"].get<graph::Shape>()) << where;
    const Statistics got = statistics(value.as<float>());
    const double scale = expected["std"].get<double>();
    const auto near = [&](const char* key, double actual) {
      EXPECT_NEAR(actual, expected[key].get<double>(),
                  1e-3 * std::max(std::abs(expected[key].get<double>()), scale))
          << where << " " << key;
    };
    near("mean", got.mean);
    near("std", got.deviation);
    near("min", got.min);
    near("max", got.max);
    for (size_t k = 0; k < expected["first8"].size(); ++k) {
      EXPECT_NEAR(value.as<float>()[k], expected["first8"][k].get<double>(), 1e-3 * scale)
          << where << " element " << k;
    }
  }
}

TEST_P(Golden, TheOutputIsThatOfPyTorch) {
  const std::string name = GetParam();
  FERRY_NEED_FILE(data_file("weights/" + name + ".pt"), "the output of a real checkpoint");
  FERRY_NEED_FILE(golden_file(name + "_formula320_output.npy"), "the output of a real checkpoint");
  auto model = import_torch(data_file("weights/" + name + ".pt"), {.height = 320, .width = 320});
  ASSERT_TRUE(model.ok()) << model.error().message;
  const graph::Tensor picture = formula_picture({1, 3, 320, 320});
  auto values = ops::evaluate(model->graph, {&picture, 1});
  ASSERT_TRUE(values.ok()) << values.error().message;
  const auto expected = read_npy(golden_file(name + "_formula320_output.npy"));
  const auto got = (*values)[0].as<float>();
  ASSERT_EQ(got.size(), expected.size());
  double worst_box = 0, worst_score = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    double& worst = i % 85 < 4 ? worst_box : worst_score;
    worst = std::max<double>(worst, std::abs(got[i] - expected[i]));
  }
  EXPECT_LT(worst_box, 2e-3);
  EXPECT_LT(worst_score, 1e-4);
  RecordProperty("worst_box_pixels", fmt::format("{}", worst_box));
  RecordProperty("worst_score", fmt::format("{}", worst_score));
}

TEST_P(Golden, NamesAnchorsStridesAndParametersAreThoseOfPyTorch) {
  const std::string name = GetParam();
  FERRY_NEED_FILE(data_file("weights/" + name + ".pt"), "names and anchors of a real checkpoint");
  FERRY_NEED_FILE(golden_file(name + ".json"), "names and anchors of a real checkpoint");
  const auto golden = read_json(golden_file(name + ".json"));
  auto model = import_torch(data_file("weights/" + name + ".pt"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ(model->detector.names.size(), golden["names"].size());
  for (size_t i = 0; i < model->detector.names.size(); ++i) {
    EXPECT_EQ(model->detector.names[i], golden["names"][std::to_string(i)]);
  }
  EXPECT_EQ(model->source.params_fused, golden["params_fused"].get<int64_t>());
  EXPECT_EQ(model->detector.strides, golden["stride"].get<std::vector<double>>());
  EXPECT_EQ(nlohmann::json(model->detector.anchors), golden["anchors_px"]);
  EXPECT_EQ(model->graph.value(model->graph.inputs[0]).type.shape, (graph::Shape{1, 3, 640, 640}));
}

INSTANTIATE_TEST_SUITE_P(RealCheckpoints, Golden,
                         testing::Values("yolov5n_v61_coco80", "yolov5n_exp7_dwconv_coco80"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace ferry::import
