// What ops mean beyond ONNX: YOLOv5's own layers, fused forms, shapes that follow the input.
// Expected values by hand or by a formula written out here.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/text.h"
#include "ops/evaluate.h"
#include "ops/table.h"

namespace ferry::ops {
namespace {

using namespace graph;

Tensor iota(Shape shape) {
  std::vector<float> values(static_cast<size_t>(elements(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::of(std::move(shape), std::move(values));
}

Graph read(std::string_view text) {
  auto graph = parse(text, op_table());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? *std::move(graph) : Graph{};
}

Tensor run(std::string_view text, std::vector<Tensor> inputs) {
  const Graph graph = read(text);
  auto outputs = evaluate(graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.error().message;
  return outputs.ok() ? (*outputs)[0] : Tensor();
}

std::string refusal(std::string_view text) {
  const auto graph = parse(text, op_table());
  return graph.ok() ? "" : graph.error().message;
}

std::vector<float> floats(const Tensor& tensor) {
  const auto data = tensor.as<float>();
  return {data.begin(), data.end()};
}

void expect_near(const Tensor& got, const std::vector<float>& wanted) {
  ASSERT_EQ(static_cast<size_t>(got.size()), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got.as<float>()[i], wanted[i], 1e-5 + 1e-5 * std::fabs(wanted[i])) << i;
  }
}

TEST(Conv2d, AddsAResidualBeforeOrAfterTheActivation) {
  // A 1x1 convolution by -1 with bias 0.5 over {1, -2}: {-0.5, 2.5}; residual {1, 1}.
  const std::string text = R"(graph {
    input x: f32[1,1,1,2]  input r: f32[1,1,1,2]
    const w: f32[1,1,1,1] = {-1}  const b: f32[1] = {0.5}
    y = conv2d(x, w, b, r) activation="relu" residual="MODE"
    output y })";
  const auto with = [&](std::string_view mode) {
    std::string copy = text;
    copy.replace(copy.find("MODE"), 4, mode);
    return floats(run(
        copy, {Tensor::of<float>({1, 1, 1, 2}, {1, -2}), Tensor::of<float>({1, 1, 1, 2}, {1, 1})}));
  };
  EXPECT_EQ(with("after"), (std::vector<float>{1, 3.5}));     // relu(-0.5) + 1, relu(2.5) + 1
  EXPECT_EQ(with("before"), (std::vector<float>{0.5, 3.5}));  // relu(-0.5 + 1), relu(2.5 + 1)
}

TEST(Conv2d, ReadsAResidualOfHalfTheSizeForAFoldedUpsample) {
  const Tensor y = run(R"(graph {
    input x: f32[1,1,2,4]  input r: f32[1,1,1,2]
    const w: f32[1,1,1,1] = {1}
    y = conv2d(x, w, _, r) residual="before_up2"
    output y })",
                       {iota({1, 1, 2, 4}), Tensor::of<float>({1, 1, 1, 2}, {10, 20})});
  EXPECT_EQ(floats(y), (std::vector<float>{10, 11, 22, 23, 14, 15, 26, 27}));
}

TEST(Conv2d, RefusesWhatDoesNotFitWithNumbers) {
  const auto message = refusal(
      R"(graph { input x: f32[1,32,8,8] const w: f32[4,48,1,1] = zeros() y = conv2d(x, w) output y })");
  EXPECT_NE(message.find("[4,48,1,1]"), std::string::npos) << message;
  EXPECT_NE(message.find("32 channels"), std::string::npos) << message;
  EXPECT_NE(
      refusal(
          R"(graph { input x: f32[1,1,2,2] const w: f32[1,1,3,3] = zeros() y = conv2d(x, w) output y })"),
      "");
  EXPECT_NE(
      refusal(
          R"(graph { input x: i64[1,1,2,2] const w: f32[1,1,1,1] = zeros() y = conv2d(x, w) output y })"),
      "");
  EXPECT_NE(
      refusal(
          R"(graph { input x: f32[1,1,2,2] const w: f32[1,1,1,1] = zeros() y = conv2d(x, w) groups=4611686018427387904 output y })"),
      "");
}

TEST(SpaceToDepth, ColumnsIsTheOrderOfFocus) {
  // Focus: cat(x[::2, ::2], x[1::2, ::2], x[::2, 1::2], x[1::2, 1::2]) over rows, columns.
  const Tensor y =
      run("graph { input x: f32[1,2,2,4] y = space_to_depth(x) order=\"columns\" output y }",
          {iota({1, 2, 2, 4})});
  EXPECT_EQ(y.shape(), (Shape{1, 8, 1, 2}));
  EXPECT_EQ(floats(y), (std::vector<float>{0, 2, 8, 10, 4, 6, 12, 14, 1, 3, 9, 11, 5, 7, 13, 15}));
}

TEST(SpaceToDepth, DepthToSpaceUndoesItInEveryOrder) {
  for (const std::string order : {"rows", "columns", "channels"}) {
    const Tensor x = iota({2, 3, 4, 6});
    const Tensor y = run("graph { input x: f32[2,3,4,6] a = space_to_depth(x) order=\"" + order +
                             "\" y = depth_to_space(a) order=\"" + order + "\" output y }",
                         {x});
    EXPECT_EQ(floats(y), floats(x)) << order;
  }
}

TEST(Reshape, FollowsTheInputAndTheOtherInput) {
  Graph graph = read(R"(graph {
    input p: f32[1,6,4]  input picture: f32[1,3,2,3]
    a = reshape(p, picture) shape=[-2,4,-2,-2]
    b = reshape(p) shape=[0,-1]
    output a, b })");
  EXPECT_EQ(graph.value(graph.outputs[0]).type.shape, (Shape{1, 4, 2, 3}));
  ASSERT_TRUE(set_input_type(graph, 1, {DType::kF32, {1, 3, 6, 1}}).ok());
  EXPECT_EQ(graph.value(graph.outputs[0]).type.shape, (Shape{1, 4, 6, 1}));
  EXPECT_EQ(graph.value(graph.outputs[1]).type.shape, (Shape{1, 24}));
  EXPECT_NE(refusal("graph { input x: f32[2,3] y = reshape(x) shape=[-1,-1] output y }"), "");
  EXPECT_NE(refusal("graph { input x: f32[2,3] y = reshape(x) shape=[4] output y }"), "");
  EXPECT_NE(refusal("graph { input x: f32[2,3] y = reshape(x) shape=[-2,3] output y }"), "");
  EXPECT_NE(
      refusal("graph { input x: f32[0,3] y = reshape(x) shape=[-1,0] allow_zero=1 output y }"), "");
}

TEST(Linear, IsPyTorchsLinear) {
  const Tensor y = run(R"(graph {
    input x: f32[1,2,2]  const w: f32[3,2] = {1, 2, 3, 4, 5, 6}  const b: f32[3] = {0.5, 0, -1}
    y = linear(x, w, b) output y })",
                       {Tensor::of<float>({1, 2, 2}, {1, 1, -1, 2})});
  EXPECT_EQ(floats(y), (std::vector<float>{3.5, 7, 10, 3.5, 5, 6}));
}

TEST(Add, AppliesItsActivationToTheSum) {
  const Tensor y = run(R"(graph { input a: f32[2,2] const b: f32[2] = {-1, 1}
    y = add(a, b) activation="leaky_relu" alpha=0.5 output y })",
                       {Tensor::of<float>({2, 2}, {0, 1, 3, -4})});
  EXPECT_EQ(floats(y), (std::vector<float>{-0.5, 2, 2, -1.5}));
}

TEST(YoloDetect, DecodesAsUpstreamDoesLevelByLevel) {
  // One class, two levels with one and one anchors. Logit 0 has sigmoid 0.5: x = (1 - 0.5 + cell) *
  // stride, w = anchor.
  Tensor p3 = *Tensor::make({DType::kF32, {1, 6, 1, 2}});
  Tensor p4 = *Tensor::make({DType::kF32, {1, 6, 2, 1}});
  const float ln3 = std::log(3.0f);  // sigmoid 0.75
  p3.mut<float>()[1] = ln3;          // x of cell (0, 1)
  p4.mut<float>()[5] = ln3;          // w of cell (1, 0)
  p4.mut<float>()[11] = -ln3;        // class score of cell (1, 0)
  const Tensor y = run(R"(graph { input p3: f32[1,6,1,2] input p4: f32[1,6,2,1]
    y = yolo_detect(p3, p4) anchors=[10,13,30,61] strides=[8,16] classes=1 output y })",
                       {p3, p4});
  EXPECT_EQ(y.shape(), (Shape{1, 4, 6}));
  expect_near(y, {4,  4,  10,         13, 0.5, 0.5,  //
                  16, 4,  10,         13, 0.5, 0.5,  // (1.5 - 0.5 + 1) * 8
                  8,  8,  30,         61, 0.5, 0.5,  //
                  8,  24, 30 * 2.25f, 61, 0.5, 0.25f});
}

TEST(YoloDetect, RefusesHeadsThatDoNotFitTheAnchors) {
  EXPECT_NE(refusal("graph { input p: f32[1,18,2,2] y = yolo_detect(p) anchors=[1,2,3,4] "
                    "strides=[8] classes=80 output y }"),
            "");
  EXPECT_NE(refusal("graph { input p: f32[1,18,2,2] y = yolo_detect(p) anchors=[1,2,3] strides=[8] "
                    "classes=1 output y }"),
            "");
  EXPECT_NE(refusal("graph { input p: f32[1,6,2,2] y = yolo_detect(p) anchors=[1,2] strides=[8,16] "
                    "classes=1 output y }"),
            "");
}

TEST(Gather, AnIndexOutsideIsAnErrorAndNotARead) {
  const Graph graph = read("graph { input x: f32[3] input i: i64[1] y = gather(x, i) output y }");
  for (const int64_t index : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
    const auto y =
        evaluate(graph, std::vector<Tensor>{iota({3}), Tensor::of<int64_t>({1}, {index})});
    ASSERT_FALSE(y.ok()) << index;
    EXPECT_NE(y.error().message.find(std::to_string(index)), std::string::npos)
        << y.error().message;
  }
}

TEST(ScatterNd, AnIndexOutsideIsAnErrorAndNotAWrite) {
  const Graph graph = read(
      "graph { input x: f32[3] input i: i64[1,1] input u: f32[1] y = scatter_nd(x, i, u) output y "
      "}");
  for (const int64_t index : {int64_t{3}, int64_t{-4}, INT64_MIN}) {
    EXPECT_FALSE(
        evaluate(graph,
                 std::vector<Tensor>{iota({3}), Tensor::of<int64_t>({1, 1}, {index}), iota({1})})
            .ok());
  }
}

TEST(Div, ByIntegerZeroIsAnErrorAndTheSmallestOverMinusOneWraps) {
  const Graph graph =
      read("graph { input a: i64[2] input b: i64[2] q = div(a, b) r = mod(a, b) output q, r }");
  const Tensor a = Tensor::of<int64_t>({2}, {INT64_MIN, 7});
  EXPECT_FALSE(evaluate(graph, std::vector<Tensor>{a, Tensor::of<int64_t>({2}, {1, 0})}).ok());
  const auto y = evaluate(graph, std::vector<Tensor>{a, Tensor::of<int64_t>({2}, {-1, 2})});
  ASSERT_TRUE(y.ok()) << y.error().message;
  EXPECT_EQ((*y)[0].as<int64_t>()[0], INT64_MIN);
  EXPECT_EQ((*y)[0].as<int64_t>()[1], 3);
  EXPECT_EQ((*y)[1].as<int64_t>()[0], 0);
}

TEST(ShapeRules, HostileNumbersAreRefusedNotOverflowed) {
  const std::string big = "9223372036854775807", small = "-9223372036854775808";
  for (const std::string& text : std::vector<std::string>{
           "y = reshape(x) shape=[" + big + "," + big + "]",
           "y = expand(x) shape=[" + big + ",2,3]",
           "y = tile(x) repeats=[" + big + "," + big + "]",
           "y = pad(x) pads=[" + big + "," + big + "," + big + "," + big + "]",
           "y = pad(x) pads=[" + small + ",0," + small + ",0]",
           "y = transpose(x) perm=[0," + small + "]",
           "y = squeeze(x) axes=[" + small + "]",
           "y = unsqueeze(x) axes=[" + big + "]",
           "y = flatten(x) axis=" + small,
           "y = slice(x) starts=[0] ends=[1] axes=[" + big + "]",
           "y = slice(x) starts=[0] ends=[1] axes=[0] steps=[0]",
           "a, b = split(x) axis=1 sizes=[" + big + "," + big + "]",
           "a, b = split(x) axis=1 sizes=[" + big + "," + small + "]",
           "y = softmax(x) axis=" + big,
           std::string("y = depth_to_space(x)"),
       }) {
    const std::string last = text.substr(0, 1) == "a" ? "a" : "y";
    EXPECT_NE(refusal("graph { input x: f32[2,3] " + text + " output " + last + " }"), "") << text;
  }
  for (const std::string& text : std::vector<std::string>{
           "y = max_pool2d(x) kernel=[" + big + ",1]",
           "y = max_pool2d(x) kernel=[2,2] pads=[" + big + ",0,0,0]",
           "y = max_pool2d(x) kernel=[2,2] pads=[2,2,2,2]",
           "y = avg_pool2d(x) kernel=[2,2] strides=[0,1]",
           "y = resize(x) scales=[1e300,1]",
           "y = resize(x) scales=[nan,1]",
           "y = resize(x) sizes=[" + big + "," + big + "]",
           "y = resize(x) sizes=[0,1]",
           "y = space_to_depth(x) block=" + big,
           "y = depth_to_space(x) block=" + big,
           "y = yolo_detect(x) anchors=[1,2] strides=[8] classes=" + big,
           "y = yolo_detect(x) anchors=[1,2] strides=[8] classes=" + small,
           "y = group_norm(x) groups=" + big,
       }) {
    EXPECT_NE(refusal("graph { input x: f32[1,4,4,4] " + text + " output y }"), "") << text;
  }
}

TEST(Slice, StepsOfAnySizeStayInside) {
  const Tensor y = run(R"(graph { input x: f32[5]
    a = slice(x) starts=[4] ends=[-9223372036854775808] axes=[0] steps=[-9223372036854775808]
    b = slice(x) starts=[1] ends=[9223372036854775807] axes=[0] steps=[9223372036854775807]
    c = slice(x) starts=[-9223372036854775808] ends=[9223372036854775807] axes=[0] steps=[4]
    y = concat(a, b, c) axis=0
    output y })",
                       {iota({5})});
  EXPECT_EQ(floats(y), (std::vector<float>{4, 1, 0, 4}));
}

TEST(EmptyTensors, GoThroughWithoutAReadOrADivisionByZero) {
  for (const std::string& text : std::vector<std::string>{
           std::string("y = silu(x)"),
           std::string("y = concat(x, x)"),
           std::string("y = transpose(x) perm=[3,2,1,0]"),
           std::string("y = softmax(x)"),
           std::string("y = reshape(x) shape=[0,0,-1]"),
           std::string("y = reduce_sum(x) axes=[2]"),
           std::string("y = slice(x) starts=[0] ends=[1] axes=[2]"),
           std::string("y = group_norm(x) groups=0"),
           std::string("y = layer_norm(x)"),
           std::string("y = tile(x) repeats=[1,2,3,1]"),
           std::string("y = pad(x) pads=[0,0,0,1,0,0,0,1]"),
           std::string("y = space_to_depth(x)"),
           std::string("y = matmul(x, x)"),
           std::string("y = resize(x) scales=[2,2]"),
           std::string("y = max_pool2d(x) kernel=[1,1]"),
       }) {
    const auto graph = parse("graph { input x: f32[0,4,4,4] " + text + " output y }", op_table());
    if (!graph.ok()) continue;  // refusing is fine, crashing is not
    EXPECT_TRUE(
        evaluate(*graph, std::vector<Tensor>{*Tensor::make({DType::kF32, {0, 4, 4, 4}})}).ok())
        << text;
  }
}

TEST(Softmax, OfLargeNumbersStaysFinite) {
  const Tensor y = run("graph { input x: f32[1,3] y = softmax(x) output y }",
                       {Tensor::of<float>({1, 3}, {1000, 1000, -1000})});
  expect_near(y, {0.5, 0.5, 0});
}

TEST(Macs, CountMultiplyAddsOfTheExpensiveOps) {
  const Graph graph = read(R"(graph {
    input x: f32[2,6,8,8]  const w: f32[12,3,3,3] = zeros()
    y = conv2d(x, w) groups=2 pads=[1,1,1,1] strides=[2,2]
    output y })");
  const Node& node = graph.nodes[0];
  const std::vector<const TensorType*> types = {&graph.value(node.inputs[0]).type,
                                                &graph.value(node.inputs[1]).type};
  const std::vector<const Tensor*> constants(2, nullptr);
  EXPECT_EQ(node.op->macs({node, types, constants}), 2 * 12 * 4 * 4 * 3 * 3 * 3);
}

}  // namespace
}  // namespace ferry::ops
