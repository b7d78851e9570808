#include "passes/recognise_detect.h"

#include <gtest/gtest.h>

#include "graph/op_def.h"
#include "graph/text.h"
#include "ops/table.h"

namespace ferry::passes {
namespace {

using namespace graph;

// One level of 2 x 3 cells, one anchor, one class. `xy` and `wh` are spelled by the caller from
// `a` = sigmoid of x, y and `b` = sigmoid of w, h.
std::string tail(const std::string& nodes) {
  return R"(graph {
    input x: f32[1,2,2,3]
    const w: f32[6,2,1,1] = uniform(1, -1, 1)
    const grid: f32[1,1,2,3,2] = {-0.5,-0.5, 0.5,-0.5, 1.5,-0.5, -0.5,0.5, 0.5,0.5, 1.5,0.5}
    const grid8: f32[1,1,2,3,2] = {-4,-4, 4,-4, 12,-4, -4,4, 4,4, 12,4}
    const anchor: f32[2] = {10.5, 13}
    const anchor4: f32[2] = {42, 52}
    const two: f32[1] = {2}
    const eight: f32[1] = {8}
    const sixteen: f32[1] = {16}
    head = conv2d(x, w)
    h5 = reshape(head) shape=[1,1,6,2,3]
    t = transpose(h5) perm=[0,1,3,4,2]
    s = sigmoid(t)
    a, b, c = split(s) axis=4 sizes=[2,2,2]
    )" + nodes +
         R"(
    y5 = concat(xy, wh, c) axis=4
    y = reshape(y5) shape=[1,-1,6]
    output y
  })";
}

Graph read(const std::string& text) {
  auto graph = parse(text, ops::op_table());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? *std::move(graph) : Graph();
}

// How many Detect tails are found, and that the graph is sound afterwards.
int recognise(Graph& graph) {
  const auto found = recognise_detect(graph);
  EXPECT_TRUE(found.ok() && verify(graph).ok());
  return found.ok() ? *found : -1;
}

constexpr const char* kUsual = R"(a2 = mul(a, two)
    ag = add(a2, grid)
    xy = mul(ag, eight)
    b2 = mul(b, two)
    bb = pow(b2, two)
    wh = mul(bb, anchor))";

TEST(RecogniseDetect, the_usual_spelling_becomes_one_node_with_stride_and_anchors) {
  Graph graph = read(tail(kUsual));
  ASSERT_EQ(recognise(graph), 1);
  ASSERT_EQ(graph.nodes.size(), 2u);
  const Node& node = graph.nodes[1];
  EXPECT_EQ(node.op->name, "yolo_detect");
  EXPECT_EQ(attr<Floats>(node, "strides"), (Floats{8}));
  EXPECT_EQ(attr<Floats>(node, "anchors"), (Floats{10.5, 13}));
  EXPECT_EQ(attr<int64_t>(node, "classes"), 1);
  EXPECT_EQ(graph.value(graph.outputs[0]).name, "y");
  EXPECT_EQ(recognise(graph), 0) << "a second run finds nothing";
}

TEST(RecogniseDetect, factors_multiplied_out_and_squares_by_mul_are_the_same_tail) {
  Graph graph = read(tail(R"(a16 = mul(a, sixteen)
    xy = add(a16, grid8)
    bb = mul(b, b)
    wh = mul(bb, anchor4))"));
  ASSERT_EQ(recognise(graph), 1);
  EXPECT_EQ(attr<Floats>(graph.nodes[1], "strides"), (Floats{8}));
  EXPECT_EQ(attr<Floats>(graph.nodes[1], "anchors"), (Floats{10.5, 13}));
}

TEST(RecogniseDetect, a_tail_that_agrees_at_the_probe_only_is_left_alone) {
  // YOLOv3's boxes: xy = s + grid, wh without the square. With s = 1/2 both look like YOLOv5's.
  Graph linear = read(tail(R"(a2 = mul(a, two)
    ag = add(a2, grid)
    xy = mul(ag, eight)
    b2 = mul(b, two)
    wh = mul(b2, anchor))"));
  const std::string before = print(linear);
  EXPECT_EQ(recognise(linear), 0);
  EXPECT_EQ(print(linear), before);
}

TEST(RecogniseDetect, another_grid_is_left_alone) {
  Graph graph = read(tail(R"(a2 = mul(a, two)
    ag = sub(a2, grid)
    xy = mul(ag, eight)
    b2 = mul(b, two)
    bb = mul(b2, b2)
    wh = mul(bb, anchor))"));
  EXPECT_EQ(recognise(graph), 0);
}

TEST(RecogniseDetect, rows_that_also_read_the_picture_are_left_alone) {
  Graph graph = read(R"(graph {
    input x: f32[1,6,2,3]
    const w: f32[6,6,1,1] = uniform(1, -1, 1)
    head = conv2d(x, w)
    sum = add(head, x)
    h5 = reshape(sum) shape=[1,6,6]
    y = transpose(h5) perm=[0,2,1]
    output y
  })");
  EXPECT_EQ(recognise(graph), 0);
}

TEST(RecogniseDetect, outputs_that_show_the_tails_inside_keep_their_nodes) {
  std::string text = tail(kUsual);
  text.insert(text.rfind('}'), "output t\n");
  Graph graph = read(text);
  ASSERT_EQ(recognise(graph), 1);
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.value(graph.outputs[1]).name, "t");
}

}  // namespace
}  // namespace ferry::passes
