// Detectors as exporters write them (tests/data/onnx, made by tests/tools/make_onnx_cases.py)
// against what ONNX Runtime answers for them; and the real files, where they are there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/op_def.h"
#include "import/onnx/import_onnx.h"
#include "ops/evaluate.h"

namespace ferry::import {
namespace {

using graph::Tensor;

constexpr const char* kFolder = "tests/data/onnx";

nlohmann::json all_cases() {
  std::ifstream file(std::string(kFolder) + "/cases.json");
  return nlohmann::json::parse(file);
}

std::vector<float> read_floats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), values.size() * sizeof(float), reinterpret_cast<char*>(values.data()));
  return values;
}

// The same numbers as picture() of make_onnx_cases.py.
Tensor picture(const graph::Shape& shape) {
  std::vector<float> values(static_cast<size_t>(graph::elements(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 2654435761u & 0xffffffff) >> 8) * 0x1p-24f;
  }
  return Tensor::of<float>(shape, std::move(values));
}

std::vector<double> flat(const std::vector<std::vector<std::array<double, 2>>>& anchors) {
  std::vector<double> out;
  for (const auto& level : anchors) {
    for (const auto& anchor : level) out.insert(out.end(), anchor.begin(), anchor.end());
  }
  return out;
}

class OnnxCase : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto file = all_cases();
    names_ = file["names"];
    for (const auto& c : file["cases"]) {
      if (c["name"] == GetParam()) case_ = c;
    }
    path_ = fmt::format("{}/{}.onnx", kFolder, GetParam());
  }
  ImportOptions options() const {
    return {.height = case_["height"], .width = case_["width"], .batch = case_["batch"]};
  }
  nlohmann::json names_, case_;
  std::string path_;
};

TEST_P(OnnxCase, computes_what_onnxruntime_computes) {
  const auto model = import_onnx(path_, options());
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Tensor x = picture({case_["batch"], 3, case_["height"], case_["width"]});
  const auto found = ops::evaluate(model->graph, std::span(&x, 1));
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ((*found)[0].shape(), case_["shape"].get<graph::Shape>());
  const auto expected = read_floats(fmt::format("{}/{}.bin", kFolder, GetParam()));
  const auto values = (*found)[0].as<float>();
  ASSERT_EQ(values.size(), expected.size());
  const double tolerance = case_["tolerance"];
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

TEST_P(OnnxCase, has_its_detect_layer_recognised_with_exact_anchors) {
  const auto model = import_onnx(path_, options());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->detector.head == Head::kYolov5, case_["head"].get<bool>());
  EXPECT_EQ(model->detector.names, names_.get<std::vector<std::string>>());
  EXPECT_EQ(model->detector.nc, 2);
  EXPECT_EQ(model->detector.strides, case_["strides"].get<std::vector<double>>());
  EXPECT_EQ(flat(model->detector.anchors), case_["anchors"].get<std::vector<double>>());
  EXPECT_EQ(model->any_size, case_["any_size"].get<bool>());
  if (model->detector.head == Head::kYolov5) {
    EXPECT_EQ(model->graph.nodes.back().op->name, "yolo_detect");
    EXPECT_EQ(model->graph.outputs.size(), 1u);
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  const auto file = all_cases();
  for (const auto& c : file["cases"]) names.push_back(c["name"]);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Files, OnnxCase, testing::ValuesIn(case_names()),
                         [](const auto& row) { return row.param; });

// A static export run at a size it was not traced for must equal the dynamic export of the same
// network at that size, which must equal ONNX Runtime's (see the case above).
TEST(OnnxSizes, a_static_detector_runs_at_other_sizes_and_batches) {
  const auto fixed =
      import_onnx(std::string(kFolder) + "/slices.onnx", {.height = 64, .width = 96, .batch = 2});
  const auto free = import_onnx(std::string(kFolder) + "/dynamic17.onnx",
                                {.height = 64, .width = 96, .batch = 2});
  ASSERT_TRUE(fixed.ok()) << fixed.error().message;
  ASSERT_TRUE(free.ok()) << free.error().message;
  const Tensor x = picture({2, 3, 64, 96});
  const auto a = ops::evaluate(fixed->graph, std::span(&x, 1)),
             b = ops::evaluate(free->graph, std::span(&x, 1));
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ((*a)[0].type(), (*b)[0].type());
  for (size_t i = 0; i < (*a)[0].as<float>().size(); ++i) {
    ASSERT_NEAR((*a)[0].as<float>()[i], (*b)[0].as<float>()[i], 1e-3) << i;
  }
}

TEST(OnnxSizes, a_size_between_strides_is_refused) {
  const auto model =
      import_onnx(std::string(kFolder) + "/slices.onnx", {.height = 40, .width = 64});
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("stride, 32"), std::string::npos) << model.error().message;
}

// --- real files ----------------------------------------------------------------------------------

std::string real_file(const char* name) {
  const char* folder = std::getenv("FERRY_DATA");
  return fmt::format("{}/weights/{}", folder ? folder : "../shared/data", name);
}

TEST(RealOnnx, the_unsorted_half_precision_yolov5n_has_80_classes_and_the_published_anchors) {
  const std::string path = real_file("yolov5n_v61_coco80_fp16_unsorted.onnx");
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there: a real export was not imported";
  const auto model = import_onnx(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->detector.head, Head::kYolov5);
  EXPECT_EQ(model->detector.nc, 80);
  EXPECT_EQ(model->detector.names.at(0), "person");
  EXPECT_EQ(model->detector.names.at(79), "toothbrush");
  EXPECT_EQ(model->detector.strides, (std::vector<double>{8, 16, 32}));
  EXPECT_EQ(flat(model->detector.anchors),
            (std::vector<double>{10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198,
                                 373, 326}));
  EXPECT_EQ(model->source.format, "ONNX opset 12, f16 weights");
  EXPECT_EQ(model->source.params_fused, 1867405);  // as Ultralytics prints for the fused yolov5n
  EXPECT_TRUE(model->any_size);
}

TEST(RealOnnx, raw_heads_of_a_face_detector_stay_what_they_are) {
  const std::string path = real_file("shuffle_landmark_rawheads_320x640.onnx");
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there: a real export was not imported";
  const auto model = import_onnx(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->detector.head, Head::kNone);
  const auto& graph = model->graph;
  EXPECT_EQ(graph::type_text(graph.value(graph.inputs[0]).type), "f32[1,3,320,640]");
  ASSERT_EQ(graph.outputs.size(), 3u);
  EXPECT_EQ(graph::type_text(graph.value(graph.outputs[0]).type), "f32[1,3,40,80,29]");
  EXPECT_EQ(graph.value(graph.outputs[2]).name, "stride_32");
  ASSERT_FALSE(model->source.warnings.empty());
  EXPECT_NE(model->source.warnings[0].find("raw heads"), std::string::npos);
}

}  // namespace
}  // namespace ferry::import
