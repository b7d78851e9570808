// Every op's row holds together: names, cases, ONNX rows. What the ops compute is checked in the
// other tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/text.h"
#include "ops/evaluate.h"
#include "ops/table.h"

namespace ferry::ops {
namespace {

using namespace graph;

// Numbers from -1 to 1 for f32 inputs, small integers for others; the same every time.
Tensor sample(const TensorType& type, uint64_t seed) {
  auto floats = Tensor::make({DType::kF32, type.shape});
  EXPECT_TRUE(floats.ok());
  for (float& x : floats->mut<float>()) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(seed >> 40) / 0x1p23f - 1;
    if (type.dtype != DType::kF32) x = std::floor(x * 4 + 4);
  }
  auto out = floats->cast(type.dtype);
  EXPECT_TRUE(out.ok());
  return *out;
}

TEST(OpTable, EveryOpIsDescribedAndHasShapeRuleEvaluationAndCases) {
  for (const OpDef* op : op_table()) {
    EXPECT_FALSE(op->summary.empty()) << op->name;
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->eval, nullptr) << op->name;
    EXPECT_FALSE(op->cases.empty()) << op->name;
    EXPECT_EQ(find_op(op->name), op) << op->name;
    for (const AttrDef& attr : op->attrs)
      EXPECT_FALSE(attr.doc.empty()) << op->name << " " << attr.name;
  }
}

TEST(OpTable, EveryCaseParsesAndGivesFiniteNumbersOfTheInferredTypes) {
  for (const OpDef* op : op_table()) {
    for (const OpCase& op_case : op->cases) {
      SCOPED_TRACE(op_case.graph);
      const auto graph = parse(op_case.graph, op_table());
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      EXPECT_TRUE(std::any_of(graph->nodes.begin(), graph->nodes.end(),
                              [&](const Node& node) { return node.op == op; }))
          << "the case of " << op->name << " does not use it";
      std::vector<Tensor> inputs;
      for (const ValueId id : graph->inputs)
        inputs.push_back(sample(graph->value(id).type, inputs.size()));
      const auto outputs = evaluate(*graph, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      for (size_t i = 0; i < outputs->size(); ++i) {
        EXPECT_EQ((*outputs)[i].type(), graph->value(graph->outputs[i]).type);
        if ((*outputs)[i].dtype() != DType::kF32) continue;
        for (const float y : (*outputs)[i].as<float>()) ASSERT_TRUE(std::isfinite(y));
      }
    }
  }
}

TEST(OpTable, AnOnnxTypeIsListedOnce) {
  std::set<std::string_view> seen;
  for (const OpDef* op : op_table()) {
    for (const OnnxRow& row : op->onnx) {
      EXPECT_TRUE(seen.insert(row.op_type).second) << row.op_type << " again in " << op->name;
      EXPECT_EQ(find_onnx(row.op_type).op, op);
    }
  }
  EXPECT_EQ(find_onnx("NoSuchType").op, nullptr);
}

}  // namespace
}  // namespace ferry::ops
