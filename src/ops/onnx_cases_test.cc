// ONNX converters and reference loops against ONNX Runtime: tests/data/ops/*.json, made by
// tests/tools/make_op_cases.py. Every case is one node; it is converted with the op's own
// converter, evaluated and compared.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ops/evaluate.h"
#include "ops/table.h"

namespace ferry::ops {
namespace {

using namespace graph;
using Json = nlohmann::json;

Tensor tensor_of(const Json& json) {
  const DType dtype = *dtype_from_name(json["dtype"].get<std::string>());
  const auto shape = json["shape"].get<Shape>();
  if (dtype == DType::kF32) return Tensor::of(shape, json["data"].get<std::vector<float>>());
  std::vector<int64_t> values;
  for (const Json& value : json["data"]) {
    values.push_back(value.is_boolean() ? value.get<bool>() : value.get<int64_t>());
  }
  return *Tensor::of(shape, values).cast(dtype);
}

Attr attr_of(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number()) return json.get<int64_t>();
  const bool floats = !json.empty() && json[0].is_number_float();
  return floats ? Attr(json.get<Floats>()) : Attr(json.get<Ints>());
}

void expect_equal(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(type_text(got.type()), type_text(wanted.type()));
  for (size_t i = 0; i < static_cast<size_t>(got.size()); ++i) {
    if (got.dtype() == DType::kF32) {
      const float y = wanted.as<float>()[i];
      EXPECT_NEAR(got.as<float>()[i], y, 2e-6 + 2e-6 * std::fabs(y)) << "element " << i;
    } else {
      EXPECT_EQ((*got.to_ints())[i], (*wanted.to_ints())[i]) << "element " << i;
    }
  }
}

void check(const Json& one) {
  Graph graph;
  std::vector<ValueId> ids;
  std::vector<Tensor> feeds, all;
  for (const Json& input : one["inputs"]) {
    if (input.is_null()) {
      ids.push_back(kNone);
      continue;
    }
    const Tensor tensor = tensor_of(input);
    if (input["constant"]) {
      ids.push_back(add_constant(graph, "constant", tensor));
    } else {
      ids.push_back(add_input(graph, "input", tensor.type()));
      feeds.push_back(tensor);
    }
  }
  std::vector<const TensorType*> types;
  std::vector<const Tensor*> constants;
  for (const ValueId id : ids) {
    types.push_back(id == kNone ? nullptr : &graph.value(id).type);
    constants.push_back(id != kNone && graph.value(id).constant ? &*graph.value(id).constant
                                                                : nullptr);
  }
  Attrs attrs;
  for (const auto& [name, value] : one["attrs"].items()) attrs[name] = attr_of(value);
  const auto op_type = one["op_type"].get<std::string>();
  const auto outputs = static_cast<int>(one["outputs"].size());
  const OnnxMatch match = find_onnx(op_type);
  ASSERT_NE(match.op, nullptr) << "no op takes " << op_type;
  const auto converted =
      convert_onnx(match, {op_type, one["opset"].get<int64_t>(), attrs, types, constants, outputs});
  ASSERT_TRUE(converted.ok()) << converted.error().message;
  if (one["op"] != "") {
    EXPECT_EQ(converted->op, one["op"].get<std::string>());
  }

  std::vector<ValueId> inputs;
  for (const int i : converted->inputs)
    inputs.push_back(i < 0 ? kNone : ids[static_cast<size_t>(i)]);
  const auto values = add_node(graph, op(converted->op), "node", inputs, converted->attrs, outputs);
  ASSERT_TRUE(values.ok()) << values.error().message;
  graph.outputs = *values;
  ASSERT_TRUE(verify(graph).ok()) << verify(graph).error().message;
  const auto results = evaluate(graph, feeds);
  ASSERT_TRUE(results.ok()) << results.error().message;
  for (size_t i = 0; i < results->size(); ++i)
    expect_equal((*results)[i], tensor_of(one["outputs"][i]));
}

class OnnxCases : public testing::TestWithParam<const char*> {};

TEST_P(OnnxCases, GiveWhatOnnxRuntimeGives) {
  std::ifstream file(std::string("tests/data/ops/") + GetParam() + ".json");
  ASSERT_TRUE(file) << "tests run with the repository root as working directory";
  const Json cases = Json::parse(file);
  ASSERT_GE(cases.size(), 8u);
  for (const Json& one : cases) {
    SCOPED_TRACE(one.dump().substr(0, 300));
    check(one);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OnnxCases,
                         testing::Values("convolutions", "pools", "activations", "resizes", "moves",
                                         "arithmetic", "quantised"),
                         [](const auto& param_info) { return std::string(param_info.param); });

}  // namespace
}  // namespace ferry::ops
