// Whole models: what is exported and imported again is the same detector.
#include "export/export_onnx.h"

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>

#include "export/test_round_trip.h"
#include "graph/op_def.h"
#include "import/import.h"
#include "import/onnx/import_onnx.h"
#include "ops/table.h"

namespace ferry::exporter {
namespace {

namespace fs = std::filesystem;

using import::Model;

Result<Model> read_back(const std::string& bytes, const import::ImportOptions& options = {}) {
  const auto owner = std::make_shared<std::string>(bytes);
  return import::import_onnx({reinterpret_cast<const std::byte*>(owner->data()), owner->size()},
                             owner, options);
}

Model opened(const std::string& path, const import::ImportOptions& options = {}) {
  auto model = import::import_model(path, options);
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? *std::move(model) : Model();
}

const std::string kCheckpoints = "tests/data/checkpoints/", kOnnx = "tests/data/onnx/";

// Every file that opens as a model, the checkpoints at 64 x 64.
std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const std::string& folder : {kCheckpoints, kOnnx}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string kind = entry.path().extension();
      const std::string name = entry.path().filename();
      const bool no_detector = name.starts_with("torchscript") ||
                               name.starts_with("v7_classification") ||
                               name.starts_with("v7_segmentation") || name == "tiny_weights.pt";
      if ((kind == ".pt" || kind == ".onnx" || kind == ".yaml") && !no_detector) {
        out.push_back(entry.path());
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

import::ImportOptions options_for(const std::string& path){import::ImportOptions options;
if (path.find("_weights.pt") != path.npos) options.cfg = kCheckpoints + "v7_plain.yaml";
if (path.ends_with("tiny_weights.pt")) options.cfg = "";
if (!path.ends_with(".onnx")) options.height = options.width = 64;
return options;
}  // namespace

class Files : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    model_ = opened(GetParam(), options_for(GetParam()));
    ASSERT_FALSE(model_.graph.inputs.empty());
  }
  int64_t batch() const { return model_.graph.value(model_.graph.inputs[0]).type.shape[0]; }
  Model model_;
};

TEST_P(Files, AreTheSameDetectorAfterARoundTrip) {
  for (const int64_t opset : {12, 13, 17}) {
    for (const bool simplify : {true, false}) {
      SCOPED_TRACE(fmt::format("opset {}, simplify {}", opset, simplify));
      if (opset < 13 && GetParam().ends_with("qdq.onnx")) continue;  // has scales of channels
      const auto bytes = onnx_bytes(model_, {.opset = opset, .simplify = simplify});
      ASSERT_TRUE(bytes.ok()) << bytes.error().message;
      const auto again = read_back(*bytes, {.batch = batch()});
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(again->detector.head, model_.detector.head);
      EXPECT_EQ(again->detector.names, model_.detector.names);
      EXPECT_EQ(again->detector.strides, model_.detector.strides);
      EXPECT_EQ(again->detector.nc, model_.detector.nc);
      // A file of one size may hold shapes that only it has.
      EXPECT_TRUE(model_.any_size || !again->any_size);
      if (model_.detector.head == import::Head::kYolov5) {
        EXPECT_EQ(again->source.warnings, std::vector<std::string>{});
      }
      test::expect_same_outputs(model_.graph, again->graph, 1e-4);
    }
  }
}

// What is written with dynamic axes runs at another size as what is written for that size; the rest
// is refused by name.
TEST_P(Files, WithDynamicAxesRunAtEverySizeOrAreRefused) {
  const auto bytes = onnx_bytes(model_, {.opset = 13, .dynamic = true});
  if (!bytes.ok()) {
    EXPECT_EQ(bytes.error().message.find("dynamic axes"), 0u) << bytes.error().message;
    EXPECT_FALSE(model_.any_size) << bytes.error().message;
    return;
  }
  import::ImportOptions other = options_for(GetParam());
  other.height = 96;
  other.width = 160;
  other.batch = 2;
  const auto again = read_back(*bytes, {.height = 96, .width = 160, .batch = 2});
  ASSERT_TRUE(again.ok()) << again.error().message;
  const auto fixed = onnx_bytes(opened(GetParam(), other), {.opset = 13});
  ASSERT_TRUE(fixed.ok()) << fixed.error().message;
  const auto wanted = read_back(*fixed, {.batch = 2});
  ASSERT_TRUE(wanted.ok()) << wanted.error().message;
  test::expect_same_outputs(wanted->graph, again->graph, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(All, Files, testing::ValuesIn(files()), [](const auto& row) {
  std::string name = fs::path(row.param).filename();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

TEST(Export, DynamicFilesGiveWhatTheStaticOnesGiveAtEverySize) {
  const std::string path = kCheckpoints + "v7_cross_repacked.pt";
  const auto bytes = onnx_bytes(opened(path, {.height = 64, .width = 64}), {.dynamic = true});
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  const import::ImportOptions other = {.height = 96, .width = 160, .batch = 2};
  const auto again = read_back(*bytes, other);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->detector.head, import::Head::kYolov5);
  test::expect_same_outputs(opened(path, other).graph, again->graph, 1e-4);
}

TEST(Export, DynamicIsRefusedForAModelOfOneSize) {
  Model model = opened(kCheckpoints + "tiny.pt", {.height = 64, .width = 64});
  model.any_size = false;
  const auto bytes = onnx_bytes(std::move(model), {.dynamic = true});
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().message,
            "dynamic axes were asked for, but the model works for one size only");
}

TEST(Export, RawHeadsAreTheMapsAndTheMetadataTellHowToReadThem) {
  const Model model = opened(kCheckpoints + "v7_cross_repacked.pt", {.height = 64, .width = 64});
  const auto bytes = onnx_bytes(model, {.raw_heads = true});
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  EXPECT_EQ(bytes->find("Sigmoid") == std::string::npos, false);  // of SiLU
  const auto again = read_back(*bytes);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->detector.head, import::Head::kYolov5);
  EXPECT_EQ(again->detector.anchors, model.detector.anchors);
  test::expect_same_outputs(model.graph, again->graph, 1e-4);
}

TEST(Export, HalfIsNearAndHalfAsLarge) {
  const Model model = opened(kCheckpoints + "v7_cross_repacked.pt", {.height = 64, .width = 64});
  const auto full = onnx_bytes(model, {}), half = onnx_bytes(model, {.half = true});
  ASSERT_TRUE(full.ok() && half.ok());
  EXPECT_LT(half->size(), full->size());
  const auto again = read_back(*half);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->detector.head, import::Head::kYolov5);
  EXPECT_EQ(again->detector.anchors, model.detector.anchors);  // exact: decoding stays f32
  test::expect_same_outputs(model.graph, again->graph, 2e-2);
}

TEST(Export, WithoutSimplifyBatchNormsStay) {
  const Model model = opened(kCheckpoints + "v7_cross_repacked.pt", {.height = 64, .width = 64});
  EXPECT_NE(onnx_bytes(model, {.simplify = false})->find("BatchNormalization"), std::string::npos);
  EXPECT_EQ(onnx_bytes(model, {})->find("BatchNormalization"), std::string::npos);
}

TEST(Export, TheSameModelGivesTheSameBytes) {
  const std::string path = kCheckpoints + "tiny.pt";
  const auto first = onnx_bytes(opened(path), {}), second = onnx_bytes(opened(path), {});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(Export, RefusesOpsetsThatItDoesNotWrite) {
  for (const int64_t opset : {11, 18}) {
    const auto bytes = onnx_bytes(opened(kCheckpoints + "tiny.pt"), {.opset = opset});
    ASSERT_FALSE(bytes.ok());
    EXPECT_EQ(bytes.error().message,
              fmt::format("opset {} is not supported, ferry writes 12 to 17", opset));
  }
}

TEST(Export, LeavesNothingBehindWhereItCannotWrite) {
  const auto report = export_onnx(opened(kCheckpoints + "tiny.pt"), {}, "/no/such/folder/x.onnx");
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("/no/such/folder/x.onnx"), std::string::npos)
      << report.error().message;
}

TEST(Export, ReportsWhatItWrote) {
  const std::string path = testing::TempDir() + "ferry_export_test.onnx";
  const Model model = opened(kCheckpoints + "tiny.pt", {.height = 64, .width = 96});
  const auto report = export_onnx(model, {}, path);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->inputs[0].name, "images");
  EXPECT_EQ(report->inputs[0].type.shape, (graph::Shape{1, 3, 64, 96}));
  EXPECT_EQ(report->outputs[0].name, "output0");
  EXPECT_EQ(report->bytes, static_cast<int64_t>(fs::file_size(path)));
  EXPECT_TRUE(import::import_model(path).ok());
  fs::remove(path);
}

// The weights are pages that nobody touches: only their number counts.
TEST(Export, RefusesFilesThatProtobufCannotHold) {
  constexpr int64_t kElements = int64_t{1} << 29;
  constexpr size_t kBytes = static_cast<size_t>(kElements) * sizeof(float);
  void* pages =
      ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const std::shared_ptr<const void> owner(pages, [](void* p) { ::munmap(p, kBytes); });
  Model model;
  const auto x = graph::add_input(model.graph, "x", {graph::DType::kF32, {kElements}});
  const auto w = graph::add_constant(
      model.graph, "w", graph::Tensor::view({graph::DType::kF32, {kElements}}, owner, pages));
  const auto y = graph::add_op(model.graph, ops::op("add"), "y", {x, w});
  ASSERT_TRUE(y.ok()) << y.error().message;
  model.graph.outputs = {*y};
  const std::string path = testing::TempDir() + "ferry_export_huge.onnx";
  const auto report = export_onnx(std::move(model), {.simplify = false}, path);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kUnsupported);
  EXPECT_NE(report.error().message.find("protobuf ends at 2 GiB: export with --half"),
            std::string::npos)
      << report.error().message;
  EXPECT_FALSE(fs::exists(path));
}

TEST(Metadata, NamesArePythonsOwnText) {
  EXPECT_EQ(python_dict({}), "{}");
  EXPECT_EQ(
      python_dict({"person", "driver's cab", "a \"b\"", "it's \"b\"", "tab\t", "\\", "安全帽"}),
      "{0: 'person', 1: \"driver's cab\", 2: 'a \"b\"', 3: 'it\\'s \"b\"', 4: 'tab\\t', "
      "5: '\\\\', 6: '安全帽'}");
}

}  // namespace ferry::exporter
}  // namespace ferry::exporter
