// Every op's own cases, written as ONNX and read back, compute the same: what an op's `to_onnx`
// says is what its `onnx` rows understand.
//
// FERRY_EXPORT_DUMP=FOLDER leaves every file there, with inputs and expected outputs beside it, for
// tests/cli/export_test.py, which asks ONNX Runtime the same.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "export/onnx/forms.h"
#include "export/onnx/model_proto.h"
#include "export/test_round_trip.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "import/onnx/lower.h"
#include "import/onnx/proto.h"
#include "ops/table.h"

namespace ferry::exporter {
namespace {

using graph::Graph;
using graph::OpCase;
using graph::OpDef;

nlohmann::json described(const graph::Tensor& tensor) {
  nlohmann::json json = {{"shape", tensor.shape()},
                         {"dtype", std::string(graph::dtype_name(tensor.dtype()))}};
  if (tensor.dtype() == graph::DType::kF32) {
    const auto values = tensor.as<float>();
    json["data"] = std::vector<float>(values.begin(), values.end());
  } else {
    json["data"] = *tensor.to_ints();
  }
  return json;
}

// Leaves a case for ONNX Runtime.
void dump(const Graph& graph, const std::string& file, const std::string& name) {
  const char* folder = std::getenv("FERRY_EXPORT_DUMP");
  if (folder == nullptr) return;
  const std::string path = fmt::format("{}/{}", folder, name);
  std::ofstream(path + ".onnx", std::ios::binary) << file;
  nlohmann::json json = {{"inputs", nlohmann::json::object()},
                         {"outputs", nlohmann::json::array()}};
  const std::vector<graph::Tensor> inputs = test::samples(graph);
  for (size_t i = 0; i < inputs.size(); ++i) {
    json["inputs"][graph.value(graph.inputs[i]).name] = described(inputs[i]);
  }
  const auto outputs = ops::evaluate(graph, inputs);
  ASSERT_TRUE(outputs.ok());
  for (const graph::Tensor& output : *outputs) json["outputs"].push_back(described(output));
  std::ofstream(path + ".json") << json;
}

// The graph through a file in memory.
Result<Graph> through_onnx(const Graph& graph, const graph::OnnxTarget& target,
                           const std::string& name = {}) {
  FERRY_TRY(forms, onnx::onnx_forms(graph, target));
  const auto bytes = std::make_shared<std::string>();
  FERRY_CHECK_OK(onnx::model_proto(forms, {.opset = target.opset, .producer_version = "test"})
                     .write([&](std::string_view piece) -> Status {
                       bytes->append(piece);
                       return {};
                     }));
  if (!name.empty()) dump(graph, *bytes, name);
  FERRY_TRY(proto, import::onnx::read_model(
                       {reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()}));
  import::onnx::TensorSource source(bytes, "");
  FERRY_TRY(lowered, import::onnx::lower(proto, source, {}, {}));
  return std::move(lowered.graph);
}

struct Refusal {
  std::string_view op;
  int64_t opset;
  std::string_view why;  // in the message
};

// What ONNX cannot say. An op with a new case that has no form fails the test until it stands here.
const Refusal kRefusals[] = {
    {"dequantize_linear", 12, "needs opset 13"},  // a scale for each channel
    {"quantize_linear", 12, "needs opset 13"},
};

class OpCases : public testing::TestWithParam<int64_t> {};

TEST_P(OpCases, ComputeTheSameAfterARoundTrip) {
  const int64_t opset = GetParam();
  for (const OpDef* op : ops::op_table()) {
    const auto refusal = std::find_if(std::begin(kRefusals), std::end(kRefusals), [&](auto& row) {
      return row.op == op->name && row.opset == opset;
    });
    bool refused = false;
    int number = 0;
    for (const OpCase& op_case : op->cases) {
      SCOPED_TRACE(op_case.graph);
      const auto graph = graph::parse(op_case.graph, ops::op_table());
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const auto again = through_onnx(*graph, {.opset = opset},
                                      fmt::format("{}_{}_opset{}", op->name, number++, opset));
      if (!again.ok() && refusal != std::end(kRefusals)) {
        EXPECT_NE(again.error().message.find(refusal->why), std::string::npos)
            << again.error().message;
        refused = true;
        continue;
      }
      ASSERT_TRUE(again.ok()) << op->name << " has no ONNX form for opset " << opset << ": "
                              << again.error().message;
      test::expect_same_outputs(*graph, *again, op_case.tolerance);
    }
    EXPECT_EQ(refused, refusal != std::end(kRefusals)) << op->name;
  }
}

// f16 keeps 11 bits. What is compared here is the structure: types that fit, casts where they must
// be.
TEST_P(OpCases, ComputeNearlyTheSameInHalfPrecision) {
  const int64_t opset = GetParam();
  for (const OpDef* op : ops::op_table()) {
    int number = 0;
    for (const OpCase& op_case : op->cases) {
      SCOPED_TRACE(op_case.graph);
      const auto graph = graph::parse(op_case.graph, ops::op_table());
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const auto again = through_onnx(*graph, {.opset = opset, .half = true},
                                      fmt::format("{}_{}_opset{}_half", op->name, number++, opset));
      if (op->name == "quantize_linear" || op->name == "dequantize_linear") {
        EXPECT_FALSE(again.ok());
        continue;
      }
      ASSERT_TRUE(again.ok()) << op->name << ": " << again.error().message;
      test::expect_same_outputs(*graph, *again, 5e-3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Opsets, OpCases, testing::Values(12, 13, 14, 15, 17),
                         [](const auto& row) { return fmt::format("opset{}", row.param); });

Graph parsed(std::string_view text) {
  auto graph = graph::parse(text, ops::op_table());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return *std::move(graph);
}

std::vector<std::string> op_types(const onnx::Forms& forms) {
  std::vector<std::string> types;
  for (const onnx::NodeForm& node : forms.nodes) types.push_back(node.op_type);
  return types;
}

using Types = std::vector<std::string>;

TEST(Forms, SiluIsWhatUpstreamsExporterWrites) {
  const Graph graph = parsed("graph {\n input x: f32[1,2]\n y = silu(x)\n output y\n}");
  const auto forms = onnx::onnx_forms(graph, {.opset = 12});
  ASSERT_TRUE(forms.ok()) << forms.error().message;
  EXPECT_EQ(op_types(*forms), (Types{"Sigmoid", "Mul"}));
  EXPECT_EQ(forms->nodes[1].inputs[0], "x");
  EXPECT_EQ(forms->nodes[1].outputs[0], "y");
}

TEST(Forms, HardswishIsOneNodeWhereTheOpsetHasIt) {
  const Graph graph = parsed("graph {\n input x: f32[1,2]\n y = hardswish(x)\n output y\n}");
  EXPECT_EQ(op_types(*onnx::onnx_forms(graph, {.opset = 13})), (Types{"HardSigmoid", "Mul"}));
  EXPECT_EQ(op_types(*onnx::onnx_forms(graph, {.opset = 14})), (Types{"HardSwish"}));
}

TEST(Forms, DetectIsUpstreamsChainForEveryLevelInF32AlsoInAFileOfF16) {
  const Graph graph = parsed(R"(graph {
    input p: f32[1,14,4,6]
    y = yolo_detect(p) anchors=[10,13,16,30] strides=[8] classes=2
    output y
  })");
  const Types chain = {"Reshape", "Transpose", "Sigmoid", "Split",  "Mul",     "Add",   "Mul",
                       "Mul",     "Pow",       "Mul",     "Concat", "Reshape", "Concat"};
  EXPECT_EQ(op_types(*onnx::onnx_forms(graph, {.opset = 12})), chain);
  const auto half = onnx::onnx_forms(graph, {.opset = 12, .half = true});
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(op_types(*half), chain);  // the input is f32 already
  for (const onnx::NamedTensor& constant : half->constants) {
    EXPECT_NE(constant.tensor.dtype(), graph::DType::kF16) << constant.name;
  }
}

TEST(Forms, HalfCastsAtTheEdgesOnceAndKeepsPortsInF32) {
  const Graph graph = parsed(R"(graph {
    input x: f32[1,2]
    a = relu(x)
    b = tanh(x)
    y = add(a, b)
    output y
  })");
  const auto forms = onnx::onnx_forms(graph, {.opset = 12, .half = true});
  ASSERT_TRUE(forms.ok());
  EXPECT_EQ(op_types(*forms), (Types{"Cast", "Relu", "Tanh", "Add", "Cast"}));
  EXPECT_EQ(forms->outputs[0].type.dtype, graph::DType::kF32);
  EXPECT_EQ(forms->outputs[0].name, "y");
}

TEST(Forms, InputsConstantsAndRepeatedValuesCanBeOutputs) {
  const Graph graph = parsed(R"(graph {
    input x: f32[2]
    const c: f32[2] = {1, 2}
    y = relu(x)
    output y, x, c, y
  })");
  for (const bool half : {false, true}) {
    const auto again = through_onnx(graph, {.opset = 12, .half = half});
    ASSERT_TRUE(again.ok()) << again.error().message;
    test::expect_same_outputs(graph, *again, half ? 1e-3 : 0);
  }
}

TEST(Forms, AnOutputThatAlsoFeedsTheDetectLayerKeepsItsNameInHalf) {
  const Graph graph = parsed(R"(graph {
    input x: f32[1,14,4,6]
    map = tanh(x)
    y = yolo_detect(map) anchors=[10,13,16,30] strides=[8] classes=2
    output map, y
  })");
  const auto again = through_onnx(graph, {.opset = 12, .half = true});
  ASSERT_TRUE(again.ok()) << again.error().message;
  test::expect_same_outputs(graph, *again, 5e-3);
}

TEST(Forms, HalfRefusesWeightsThatF16CannotHold) {
  const Graph graph = parsed(R"(graph {
    input x: f32[2]
    const w: f32[2] = {1, 70000}
    y = mul(x, w)
    output y
  })");
  const auto forms = onnx::onnx_forms(graph, {.opset = 12, .half = true});
  ASSERT_FALSE(forms.ok());
  EXPECT_EQ(forms.error().message,
            "mul 'y': 'w' holds 70000, which f16 cannot (its largest number is 65504): export "
            "without --half");
}

TEST(Forms, NamesAreUniqueAndEqualConstantsAreWrittenOnce) {
  const Graph graph = parsed(R"(graph {
    input x: f32[1,2,4,4]
    a = slice(x) starts=[0] ends=[2] axes=[2]
    b = slice(x) starts=[0] ends=[2] axes=[3]
    c = reshape(a) shape=[16]
    d = reshape(b) shape=[16]
    y = add(c, d)
    output y
  })");
  const auto forms = onnx::onnx_forms(graph, {.opset = 12});
  ASSERT_TRUE(forms.ok());
  EXPECT_EQ(forms->constants.size(), 4u);  // [0], which is no axis 2; [2] twice, [3], [16]
  std::map<std::string, int> seen;
  for (const auto& constant : forms->constants) ++seen[constant.name];
  for (const auto& node : forms->nodes) {
    for (const auto& output : node.outputs) ++seen[output];
  }
  for (const auto& [name, count] : seen) EXPECT_EQ(count, 1) << name;
}

}  // namespace
}  // namespace ferry::exporter
