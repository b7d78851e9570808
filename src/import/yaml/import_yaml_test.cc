#include "import/yaml/import_yaml.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/mapped_file.h"
#include "import/torch/checkpoint.h"
#include "import/torch/test_support.h"
#include "ops/evaluate.h"
#include "ops/table.h"

namespace ferry::import {
namespace {

using namespace test;

struct Multiples {
  const char* depth;
  const char* width;
};

// The architecture of YOLOv5 v6.0 and newer (n to x differ in the two multiples).
std::string yolov5(const Multiples& m, const std::string& more = "") {
  return fmt::format(R"({}nc: 80
depth_multiple: {}
width_multiple: {}
anchors: [[10,13, 16,30, 33,23], [30,61, 62,45, 59,119], [116,90, 156,198, 373,326]]
backbone: [[-1, 1, Conv, [64, 6, 2, 2]], [-1, 1, Conv, [128, 3, 2]], [-1, 3, C3, [128]], [-1, 1, Conv, [256, 3, 2]],
  [-1, 6, C3, [256]], [-1, 1, Conv, [512, 3, 2]], [-1, 9, C3, [512]], [-1, 1, Conv, [1024, 3, 2]], [-1, 3, C3, [1024]],
  [-1, 1, SPPF, [1024, 5]]]
head: [[-1, 1, Conv, [512, 1, 1]], [-1, 1, nn.Upsample, [None, 2, 'nearest']], [[-1, 6], 1, Concat, [1]],
  [-1, 3, C3, [512, False]], [-1, 1, Conv, [256, 1, 1]], [-1, 1, nn.Upsample, [None, 2, 'nearest']],
  [[-1, 4], 1, Concat, [1]], [-1, 3, C3, [256, False]], [-1, 1, Conv, [256, 3, 2]], [[-1, 14], 1, Concat, [1]],
  [-1, 3, C3, [512, False]], [-1, 1, Conv, [512, 3, 2]], [[-1, 10], 1, Concat, [1]], [-1, 3, C3, [1024, False]],
  [[17, 20, 23], 1, Detect, [nc, anchors]]]
)",
                     more, m.depth, m.width);
}

std::string small(const std::string& layers, const std::string& more = "") {
  return fmt::format(
      "nc: 2\ndepth_multiple: 1.0\nwidth_multiple: 1.0\nanchors: [[10,13, 16,30]]\n{}backbone: "
      "[{}]\nhead: []\n",
      more, layers);
}

Result<Model> import_text(const std::string& text,
                          const ImportOptions& options = {.height = 64, .width = 64}) {
  const std::string path = testing::TempDir() + "model_under_test.yaml";
  std::ofstream(path) << text;
  return import_yaml(path, options);
}

std::string parse_error(const std::string& text) {
  auto model = parse_model_yaml(text);
  return model.ok() ? "parsed" : model.error().message;
}

TEST(ModelYaml, SizesHaveThePublishedNumbersOfParameters) {
  // Ultralytics' table and model summaries: n 1.9 M, s 7.2 M, m 21.2 M, exactly as their code
  // counts them.
  const std::pair<Multiples, int64_t> kSizes[] = {{{"0.33", "0.25"}, 1872157},
                                                  {{"0.33", "0.50"}, 7235389},
                                                  {{"0.67", "0.75"}, 21190557},
                                                  {{"1.0", "1.0"}, 46563709},
                                                  {{"1.33", "1.25"}, 86749405}};
  for (const auto& [multiples, parameters] : kSizes) {
    auto yaml = parse_model_yaml(yolov5(multiples));
    ASSERT_TRUE(yaml.ok()) << yaml.error().message;
    EXPECT_EQ(torch::count_parameters(yaml->tree), parameters) << multiples.width;
  }
}

TEST(ModelYaml, ANanoHasTheFusedParametersAndAnchorsOfTheOfficialOne) {
  auto model = import_text(yolov5({"0.33", "0.25"}));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->source.params_fused, 1867405);
  EXPECT_EQ(model->detector.strides, (std::vector<double>{8, 16, 32}));
  EXPECT_EQ(model->detector.anchors[2][1], (std::array<double, 2>{156, 198}));
  EXPECT_EQ(model->source.format, "model yaml, random weights");
  EXPECT_EQ(model->graph.value(model->graph.outputs[0]).type.shape,
            (graph::Shape{1, 3 * (64 + 16 + 4), 85}));
}

TEST(ModelYaml, TheSameSeedGivesTheSameWeightsAndAnotherDoesNot) {
  const std::string text = small("[-1, 1, Conv, [8, 3, 8]], [[0], 1, Detect, [nc, anchors]]");
  const auto first_weight = [&](uint64_t seed) {
    auto model = import_text(text, {.height = 64, .width = 64, .seed = seed});
    const graph::ValueId id = graph::find_value(model->graph, "model.0.conv.weight");
    return model->graph.value(id).constant->as<float>()[5];
  };
  EXPECT_EQ(first_weight(3), first_weight(3));
  EXPECT_NE(first_weight(3), first_weight(4));
}

TEST(ModelYaml, RandomModelsStartWithRareObjects) {
  // log(8 / (640 / 8)^2) = -6.68: sigmoid 0.00125; the convolution adds up to 1 / sqrt(8) to it.
  auto model = import_text(small("[-1, 1, Conv, [8, 3, 8]], [[0], 1, Detect, [nc, anchors]]"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const graph::Tensor picture = formula_picture({1, 3, 64, 64});
  auto outputs = ops::evaluate(model->graph, {&picture, 1});
  ASSERT_TRUE(outputs.ok());
  for (int64_t row = 0; row < 128; ++row)
    EXPECT_LT((*outputs)[0].as<float>()[static_cast<size_t>(row * 7 + 4)], 0.05f);
}

TEST(ModelYaml, AnActivationKeyChangesEveryConv) {
  auto model = import_text(
      small("[-1, 1, Conv, [8, 3, 8]], [-1, 1, C3, [8]], [[1], 1, Detect, [nc, anchors]]",
            "activation: nn.LeakyReLU(0.2)\n"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  int count = 0;
  for (const graph::Node& node : model->graph.nodes) {
    EXPECT_NE(node.op->name, "silu");
    if (node.op->name != "leaky_relu") continue;
    ++count;
    EXPECT_EQ(graph::attr<double>(node, "alpha"), 0.2);
  }
  EXPECT_EQ(count, 6);
  EXPECT_NE(
      parse_error(small("", "activation: os.system('id')\n")).find("needs a form like nn.SiLU()"),
      std::string::npos);
  EXPECT_NE(parse_error(small("", "activation: nn.Evil()\n")).find("'nn.Evil()' is unknown"),
            std::string::npos);
}

TEST(ModelYaml, ChannelsMayBeGivenAndAnchorsMayBeANumber) {
  std::string text = small("[-1, 1, Conv, [8, 3, 8]], [[0], 1, Detect, [nc, anchors]]", "ch: 1\n");
  text.replace(text.find("[[10,13, 16,30]]"), 16, "3");
  auto model = import_text(text);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->graph.value(model->graph.inputs[0]).type.shape, (graph::Shape{1, 1, 64, 64}));
  EXPECT_EQ(model->detector.anchors[0].size(), 3u);
}

TEST(ModelYaml, AnchorsInTheOtherOrderThanTheLayersAreTurned) {
  const std::string text = R"(nc: 2
depth_multiple: 1
width_multiple: 1
anchors: [[100,100], [10,10]]
backbone: [[-1, 1, Conv, [8, 3, 8]], [-1, 1, Conv, [8, 3, 2]]]
head: [[[0, 1], 1, Detect, [nc, anchors]]]
)";
  auto model = import_text(text);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->detector.anchors[0][0][0], 10);
  EXPECT_EQ(model->detector.anchors[1][0][0], 100);
}

TEST(ModelYaml, WhatIsWrongIsNamed) {
  const auto expect = [](const std::string& text, const char* part) {
    const std::string got = parse_error(text);
    EXPECT_NE(got.find(part), std::string::npos) << got << "\nlacks: " << part;
  };
  expect("nc: 1\nanchors: [1", "line 2: end of sequence flow not found");
  expect("just text", "needs keys such as nc, anchors, backbone, head");
  expect("nc: 1\nbackbone: []\nhead: []\n", "there are no 'anchors'");
  expect("nc: 1\nanchors: 3\nhead: []\n", "there is no list 'backbone'");
  expect("nc: -1\nanchors: 3\nbackbone: []\nhead: []\n", "'nc' is -1");
  expect(small("[-1, 1, Shuffle_Block, [8]]"),
         "layer 0: ferry does not know the module Shuffle_Block");
  expect(small("[-1, 1, Conv]"), "layer 0 is a list of 3");
  expect(small("[-1, 1, Conv, [wide]]"), "layer 0 Conv");
  expect(small("[-1, 1, Conv, [8]], [7, 1, Conv, [8]]"),
         "takes its input from layer 7, which does not come before it");
  expect(small("[-1, 1, Conv, [8]], [-3, 1, Conv, [8]]"), "takes its input from layer -3");
  expect(small("[-1, 1, Conv, [8, 3, 1, 0, 3]]"), "3 groups");
  expect(small("[-1, 1, Conv, [8, 100000]]"), "kernel 100000 x 100000");
  expect(small("[-1, 1, Detect, [nc, [[1,2],[3,4]]]]"), "needs a list for each of 1 levels");
}

TEST(ModelYaml, HostileSizesAreRefused) {
  EXPECT_NE(parse_error(small("[-1, 1, Conv, [1000000, 999]]")), "parsed");
  EXPECT_NE(parse_error(small("[-1, 1000000000, Conv, [8]]")), "parsed");
  EXPECT_NE(
      parse_error(
          small(
              "[-1, 1000, C3, [8]], [-1, 1000, C3, [8]], [-1, 1000, C3, [8]], [-1, 1000, C3, [8]]"))
          .find("modules"),
      std::string::npos);
  std::string text = small("[-1, 1, Conv, [64]]");
  text.replace(text.find("width_multiple: 1.0"), 19, "width_multiple: 1e5");
  EXPECT_NE(parse_error(text), "parsed");
  // Aliases that double: 2^40 values in a few hundred bytes.
  std::string aliases = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i)
    aliases += fmt::format("a{}: &a{} [*a{}, *a{}]\n", i, i, i - 1, i - 1);
  EXPECT_NE(parse_error(aliases).find("nested or repeated too much"), std::string::npos);
  EXPECT_NE(parse_error(std::string(100'000, '[')), "parsed");
}

// Checkpoints hold the yaml they were made from: made anew, it has the very tensors of the
// checkpoint.
class YamlInCheckpoint : public testing::TestWithParam<const char*> {};

void collect(const torch::Module& module, std::map<std::string, graph::Shape>& out) {
  for (const torch::ModuleTensor& t : module.tensors) {
    const bool is_weight = t.name != "num_batches_tracked" && t.name != "anchors" &&
                           t.name != "anchor_grid" && t.name != "anchors_in_pixels";
    if (is_weight) out[module.path + "." + t.name] = t.type.shape;
  }
  for (const auto& [name, child] : module.children) collect(*child, out);
}

TEST_P(YamlInCheckpoint, GivesTheTensorsOfTheCheckpoint) {
  auto file = MappedFile::open(fmt::format("tests/data/checkpoints/{}.pt", GetParam()));
  ASSERT_TRUE(file.ok());
  auto checkpoint = torch::Checkpoint::open({*file, (*file)->bytes()});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  torch::TensorReader tensors(*checkpoint);
  const torch::Value* object = torch::find(checkpoint->root(), "model");
  if (object == nullptr) object = &checkpoint->root();
  if (object->is_none()) object = torch::find(checkpoint->root(), "ema");
  auto tree = torch::read_modules(checkpoint->pickle(), *object, tensors);
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  auto made = make_model(std::make_shared<torch::Arena>(), *tree->root->attribute("yaml"));
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::map<std::string, graph::Shape> expected, got;
  collect(*tree->root, expected);
  collect(*made->tree.root, got);
  EXPECT_EQ(got, expected);
}

INSTANTIATE_TEST_SUITE_P(Files, YamlInCheckpoint,
                         testing::Values("v7_cross_f16_ema", "v7_attention_cuda", "v7_plain_legacy",
                                         "v7_activations", "v5_focus_f16"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace ferry::import
