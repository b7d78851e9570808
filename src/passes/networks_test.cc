// The passes on real networks (FERRY_DATA): the graph as imported and the graph after the passes
// agree, at the size of the import and at another size and batch afterwards. Counts of nodes and
// multiply-adds are worked out by hand from yolov5n's layers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "graph/op_def.h"
#include "import/onnx/import_onnx.h"
#include "import/torch/import_torch.h"
#include "import/yaml/import_yaml.h"
#include "ops/evaluate.h"
#include "passes/pipeline.h"
#include "passes/raw_heads.h"

namespace ferry::passes {
namespace {

using namespace graph;

std::string weights(const std::string& name) {
  const char* folder = std::getenv("FERRY_DATA");
  return std::string(folder != nullptr ? folder : "../shared/data") + "/weights/" + name;
}

Result<import::Model> open(const std::string& path, const import::ImportOptions& options) {
  return path.ends_with(".onnx") ? import::import_onnx(path, options)
                                 : import::import_torch(path, options);
}

Tensor noise(const TensorType& type) {
  std::mt19937 random(3);
  auto tensor = *Tensor::make(type);
  for (float& v : tensor.mut<float>()) v = static_cast<float>(random()) / 4294967296.0f;
  return tensor;
}

// Of convolutions and the like; a batch norm does not count.
int64_t conv_macs(const Graph& graph) {
  int64_t sum = 0;
  for (const Node& node : graph.nodes) {
    if (node.op->name != "batch_norm") sum += graph::macs(graph, node);
  }
  return sum;
}

std::map<std::string, int> ops_of(const Graph& graph) {
  std::map<std::string, int> out;
  for (const Node& node : graph.nodes) ++out[std::string(node.op->name)];
  return out;
}

void expect_same_answer(const Graph& plain, const Graph& fast) {
  const Tensor picture = noise(plain.value(plain.inputs[0]).type);
  const auto want = ops::evaluate(plain, {&picture, 1});
  const auto got = ops::evaluate(fast, {&picture, 1});
  ASSERT_TRUE(want.ok()) << want.error().message;
  ASSERT_TRUE(got.ok()) << got.error().message;
  ASSERT_EQ(want->size(), got->size());
  double worst = 0;
  for (size_t i = 0; i < want->size(); ++i) {
    ASSERT_EQ(type_text((*want)[i].type()), type_text((*got)[i].type()));
    const auto w = (*want)[i].as<float>(), g = (*got)[i].as<float>();
    for (size_t k = 0; k < w.size(); ++k) {
      ASSERT_TRUE(std::isfinite(w[k]));
      worst = std::max(worst, std::fabs(static_cast<double>(w[k]) - g[k]) / (1 + std::fabs(w[k])));
    }
  }
  EXPECT_LT(worst, 2e-4);  // sums of up to a few hundred terms, 60 layers deep, in another order
  std::printf("largest difference %.2g (relative to 1 + value)\n", worst);
}

class Network : public testing::TestWithParam<const char*> {};

TEST_P(Network, AnswersTheSameAfterThePassesAtAnySizeAndBatch) {
  const std::string path = weights(GetParam());
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is absent: passes not checked on it";
  auto model = open(path, {.height = 96, .width = 64});
  ASSERT_TRUE(model.ok()) << model.error().message;
  Graph fast = model->graph;
  const auto report = optimise(fast);
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const PassRun& run : report->runs) {
    std::printf("%-24s %8.2f ms  %3d rewrites  %4d -> %d nodes\n", std::string(run.name).c_str(),
                run.ms, run.rewrites, run.nodes_before, run.nodes_after);
  }
  std::printf("nodes %zu -> %zu, multiply-adds %lld -> %lld at 96x64\n", model->graph.nodes.size(),
              fast.nodes.size(), static_cast<long long>(conv_macs(model->graph)),
              static_cast<long long>(conv_macs(fast)));
  for (const auto& [op, count] : ops_of(fast)) std::printf("  %d %s", count, op.c_str());
  std::printf("\n");
  expect_same_answer(model->graph, fast);

  const TensorType other{DType::kF32, {2, 3, 64, 128}};
  auto plain = open(path, {.height = 64, .width = 128, .batch = 2});
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  const Status resized = set_input_type(fast, 0, other);
  ASSERT_TRUE(resized.ok()) << resized.error().message;
  expect_same_answer(plain->graph, fast);
}

INSTANTIATE_TEST_SUITE_P(Files, Network,
                         testing::Values("yolov5n_v61_coco80.pt", "yolov5n_exp7_dwconv_coco80.pt",
                                         "yolov5n_v61_coco80_fp16_unsorted.onnx"));

// Ops beyond YOLOv5's (ShuffleNet's channel shuffle, landmarks in the head), one size only.
TEST(ForeignNetwork, AnswersTheSameAfterThePasses) {
  const std::string path = weights("shuffle_landmark_rawheads_320x640.onnx");
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is absent: passes not checked on it";
  auto model = import::import_onnx(path, {});
  ASSERT_TRUE(model.ok()) << model.error().message;
  Graph fast = model->graph;
  const auto report = optimise(fast);
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const PassRun& run : report->runs) {
    if (run.rewrites == 0) continue;
    std::printf("%-24s %8.2f ms  %3d rewrites  %4d -> %d nodes\n", std::string(run.name).c_str(),
                run.ms, run.rewrites, run.nodes_before, run.nodes_after);
  }
  std::printf("nodes %zu -> %zu, multiply-adds %lld -> %lld\n", model->graph.nodes.size(),
              fast.nodes.size(), static_cast<long long>(conv_macs(model->graph)),
              static_cast<long long>(conv_macs(fast)));
  for (const auto& [op, count] : ops_of(fast)) std::printf("  %d %s", count, op.c_str());
  std::printf("\n");
  expect_same_answer(model->graph, fast);
}

class Yolov5n : public testing::TestWithParam<const char*> {};

// yolov5n v6.1: 60 convolutions; 8 C3, each with one concat and two sibling entrances; SPPF with 3
// pools and a concat; a neck of 2 upsamplings and 4 concats; Detect.
TEST_P(Yolov5n, KeepsTheNodesThatItsLayersNeedAndNoOthers) {
  const std::string path = weights(GetParam());
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is absent: passes not checked on it";
  auto model = open(path, {.height = 96, .width = 64});
  ASSERT_TRUE(model.ok()) << model.error().message;
  const int64_t before = conv_macs(model->graph);
  const auto report = optimise(model->graph);
  ASSERT_TRUE(report.ok()) << report.error().message;
  const std::map<std::string, int> want = {
      {"conv2d", 60 - 8 + 2},  // siblings joined, two low parts split off
      {"split", 8},           {"concat", 8 + 1 + 4 - 2}, {"max_pool2d", 3}, {"yolo_detect", 1},
  };
  EXPECT_EQ(ops_of(model->graph), want);
  // Three quarters of 6x4 pixels * 128 * 128 (model.13), of 12x8 pixels * 64 * 64 (model.17).
  EXPECT_EQ(before - conv_macs(model->graph), 3 * (6 * 4 * 128 * 128 + 12 * 8 * 64 * 64) / 4);
}

INSTANTIATE_TEST_SUITE_P(Files, Yolov5n,
                         testing::Values("yolov5n_v61_coco80.pt",
                                         "yolov5n_v61_coco80_fp16_unsorted.onnx"));

// The parts of v3: Focus, BottleneckCSP, SPP, at a tenth of yolov5n's width. Nothing but
// convolutions, pools and joints is left of them.
constexpr std::string_view kOldNetwork = R"(
nc: 3
depth_multiple: 1.0
width_multiple: 1.0
anchors:
  - [10,13, 16,30]
  - [30,61, 62,45]
backbone:
  [[-1, 1, Focus, [8, 3]],
   [-1, 1, Conv, [16, 3, 2]],
   [-1, 2, BottleneckCSP, [16]],
   [-1, 1, Conv, [32, 3, 2]],
   [-1, 1, SPP, [32, [5, 9, 13]]],
   [-1, 1, BottleneckCSP, [32, False]],
  ]
head:
  [[-1, 1, Conv, [16, 1, 1]],
   [-1, 1, nn.Upsample, [None, 2, 'nearest']],
   [[-1, 2], 1, Concat, [1]],
   [-1, 1, BottleneckCSP, [16, False]],
   [[9, 5], 1, Detect, [nc, anchors]],
  ]
)";

TEST(OldNetwork, IsReducedToConvolutionsPoolsAndJoints) {
  const std::string path = testing::TempDir() + "/ferry_passes_old_network.yaml";
  std::ofstream(path) << kOldNetwork;
  auto model = import::import_yaml(path, {.height = 64, .width = 32});
  ASSERT_TRUE(model.ok()) << model.error().message;
  Graph fast = model->graph;
  const auto report = optimise(fast);
  ASSERT_TRUE(report.ok()) << report.error().message;
  const std::map<std::string, int> ops = ops_of(fast);
  for (const auto& [op, count] : ops) std::printf("  %d %s", count, op.c_str());
  std::printf("\nnodes %zu -> %zu\n", model->graph.nodes.size(), fast.nodes.size());
  for (const auto& [op, count] : ops) {
    const bool expected = op == "conv2d" || op == "concat" || op == "split" || op == "max_pool2d" ||
                          op == "yolo_detect";
    EXPECT_TRUE(expected) << count << " " << op;
  }
  for (const Node& node : fast.nodes) {
    if (node.op->name == "max_pool2d") {
      EXPECT_EQ(attr<Ints>(node, "kernel"), (Ints{5, 5}));
    }
  }
  expect_same_answer(model->graph, fast);
}

TEST(RawHeads, OfARealDetectorAreItsLastConvolutions) {
  const std::string path = weights("yolov5n_v61_coco80.pt");
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is absent: raw heads not checked on it";
  auto model = open(path, {.height = 96, .width = 64});
  ASSERT_TRUE(model.ok()) << model.error().message;
  Graph& graph = model->graph;
  ASSERT_TRUE(optimise(graph).ok());
  const auto head = expose_raw_heads(graph);
  ASSERT_TRUE(head.ok()) << head.error().message;
  ASSERT_TRUE(verify(graph).ok());
  EXPECT_EQ(head->classes, 80);
  EXPECT_EQ(head->strides, (std::vector<double>{8, 16, 32}));
  ASSERT_EQ(head->anchors.size(), 3u);
  EXPECT_NEAR(head->anchors[0][0][0], 10, 0.01);  // models/yolov5n.yaml: P3/8 [10,13, 16,30, 33,23]
  EXPECT_NEAR(head->anchors[2][2][1], 326, 0.5);
  ASSERT_EQ(graph.outputs.size(), 3u);
  EXPECT_EQ(graph.value(graph.outputs[0]).type.shape, (Shape{1, 255, 12, 8}));
  EXPECT_EQ(graph.value(graph.outputs[2]).type.shape, (Shape{1, 255, 3, 2}));
}

}  // namespace
}  // namespace ferry::passes
