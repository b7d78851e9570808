// The CPU device against the reference: every op's cases, and graphs in which placement and layouts
// matter.
#include "runtime/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "graph/text.h"
#include "ops/evaluate.h"
#include "ops/table.h"

namespace ferry::runtime {
namespace {

using graph::Graph;
using graph::Tensor;

Tensor random_tensor(const graph::TensorType& type, uint64_t seed) {
  Tensor tensor = *Tensor::make({graph::DType::kF64, type.shape});
  for (double& v : tensor.mut<double>()) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<double>(seed >> 40) * 0x1p-23 - 1;  // [-1, 1)
  }
  return *tensor.cast(type.dtype);
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance,
                  const std::string& where) {
  ASSERT_EQ(graph::type_text(got.type()), graph::type_text(want.type())) << where;
  const Tensor a = *got.cast(graph::DType::kF64), b = *want.cast(graph::DType::kF64);
  for (size_t i = 0; i < a.as<double>().size(); ++i) {
    const double x = a.as<double>()[i], y = b.as<double>()[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    ASSERT_LE(std::fabs(x - y), tolerance * (1 + std::fabs(y)))
        << where << ", element " << i << ": " << x << " vs " << y;
  }
}

void compare_on(const std::shared_ptr<Device>& device, const Graph& graph, double tolerance,
                const std::string& where) {
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : graph.inputs)
    inputs.push_back(random_tensor(graph.value(id).type, inputs.size() + 1));
  const auto want = ops::evaluate(graph, inputs);
  ASSERT_TRUE(want.ok()) << where << ": " << want.error().message;
  auto plan = Plan::compile(device, graph);
  ASSERT_TRUE(plan.ok()) << where << ": " << plan.error().message;
  auto context = Context::create(*plan);
  ASSERT_TRUE(context.ok());
  for (size_t i = 0; i < inputs.size(); ++i) write_input((*context)->input(i), inputs[i]);
  for (int run = 0; run < 2; ++run) {  // twice: a run must leave nothing behind
    const Status status = (*context)->run();
    ASSERT_TRUE(status.ok()) << where << ": " << status.error().message;
    for (size_t i = 0; i < want->size(); ++i) {
      expect_close(*read_output((*context)->output(i)), (*want)[i], tolerance, where);
    }
  }
}

void compare(const Graph& graph, int threads, double tolerance, const std::string& where) {
  auto device = Device::open("cpu", {.threads = threads});
  ASSERT_TRUE(device.ok());
  compare_on(*device, graph, tolerance, where);
}

TEST(Device, AnswersEveryOpCaseAsTheReferenceDoes) {
  size_t cases = 0;
  for (const ops::OpDef* op : ops::op_table()) {
    for (const graph::OpCase& c : op->cases) {
      const std::string where = fmt::format("{}: {}", op->name, c.graph);
      const auto graph = graph::parse(c.graph, ops::op_table());
      ASSERT_TRUE(graph.ok()) << where << ": " << graph.error().message;
      compare(*graph, 1, c.tolerance, where);
      compare(*graph, 2, c.tolerance, where);
      ++cases;
    }
  }
  EXPECT_GT(cases, 20u);
}

constexpr std::string_view kBlock = R"(graph {
  input x: f32[1,16,12,20]
  const w0: f32[32,16,1,1] = uniform(1, -0.3, 0.3)
  const b0: f32[32] = uniform(2, -1, 1)
  const w1: f32[16,16,1,1] = uniform(3, -0.3, 0.3)
  const w2: f32[16,16,3,3] = uniform(4, -0.1, 0.1)
  const w3: f32[24,48,1,1] = uniform(5, -0.2, 0.2)
  merged = conv2d(x, w0, b0) activation="silu"
  a, b = split(merged) axis=1 sizes=[16,16]
  h = conv2d(a, w1) activation="silu"
  m = conv2d(h, w2, _, a) pads=[1,1,1,1] activation="silu" residual="after"
  h2 = conv2d(m, w1) activation="silu"
  m2 = conv2d(h2, w2, _, m) pads=[1,1,1,1] activation="silu" residual="after"
  p = max_pool2d(m2) kernel=[5,5] pads=[2,2,2,2]
  cat = concat(m2, b, p) axis=1
  y = conv2d(cat, w3) activation="silu"
  up = resize(y) scales=[2.0,2.0] coordinates="asymmetric" nearest_mode="floor"
  output y, up, m2
})";

TEST(Device, ABlockWithSplitResidualsAndConcatAnswersAsTheReferenceDoes) {
  const auto graph = graph::parse(kBlock, ops::op_table());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  for (const int threads : {1, 2, 3})
    compare(*graph, threads, 1e-4, fmt::format("{} threads", threads));
}

// Bytes, bfloat16 and floats in one graph: a slice that is concatenated twice, residuals of another
// storage, conversions, an op without a kernel between stored pictures.
constexpr std::string_view kStoredBlock = R"(graph {
  input x: f32[1,3,12,20] as u8(0.0078125, 128)
  const s: f32[16,3,6,6] as i8(0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002) = full(0.1)
  const b0: f32[16] = uniform(2, -1, 1)
  const w1: f32[16,16,1,1] as bf16 = full(0.0625)
  const w3: f32[24,48,1,1] = uniform(5, -0.2, 0.2)
  stem: f32[1,16,6,10] as u8(0.03, 10) = conv2d(x, s, b0) strides=[2,2] pads=[2,2,2,2] activation="silu"
  half: f32[1,16,6,10] as bf16 = identity(stem)
  h: f32[1,16,6,10] as bf16 = conv2d(half, w1) activation="silu"
  m: f32[1,16,6,10] as u8(0.03, 10) = conv2d(h, w1, _, stem) activation="silu" residual="after"
  p: f32[1,16,6,10] as u8(0.03, 10) = max_pool2d(m) kernel=[5,5] pads=[2,2,2,2]
  q: f32[1,16,6,10] as u8(0.02, 0) = add(p, half) activation="relu"
  cat: f32[1,48,6,10] as u8(0.03, 10) = concat(m, p, q) axis=1
  wide = identity(cat)
  y = conv2d(wide, w3) activation="silu"
  up: f32[1,16,12,20] as u8(0.03, 10) = resize(m) scales=[2.0,2.0] coordinates="asymmetric" nearest_mode="floor"
  odd: f32[1,16,12,20] as bf16 = abs(up)
  e = identity(odd)
  output y, e, q
})";

TEST(Device, StoredValuesAnswerAsTheReferenceDoes) {
  const auto graph = graph::parse(kStoredBlock, ops::op_table());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  // Sums near the middle of two elements may round either way: one element, carried on.
  for (const int threads : {1, 2, 3})
    compare(*graph, threads, 0.04, fmt::format("{} threads", threads));
}

TEST(Device, OnlyPicturesMayBeKeptInAnotherStorage) {
  const auto graph = graph::parse("graph {\n input x: f32[4,4] as bf16\n y = relu(x)\n output y\n}",
                                  ops::op_table());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto plan = Plan::compile(*Device::open("cpu"), *graph);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("'x' is no picture"), std::string::npos);
}

TEST(Device, TheSameRunGivesTheSameBits) {
  const auto graph = graph::parse(kBlock, ops::op_table());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const Tensor input = random_tensor(graph->value(graph->inputs[0]).type, 7);
  const auto device = *Device::open("cpu", {.threads = 2});
  std::vector<Tensor> first;
  for (int i = 0; i < 5; ++i) {
    const auto context = *Context::create(*Plan::compile(device, *graph));
    write_input(context->input(0), input);
    ASSERT_TRUE(context->run().ok());
    const Tensor y = *read_output(context->output(0));
    if (i == 0) first.push_back(y);
    ASSERT_TRUE(std::ranges::equal(first[0].bytes(), y.bytes()));
  }
}

TEST(Device, ContextsShareWeightsAndRunSideBySide) {
  const auto graph = graph::parse(kBlock, ops::op_table());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto device = *Device::open("cpu", {.threads = 2});
  const std::shared_ptr<const Plan> plan = *Plan::compile(device, *graph);
  const Tensor input = random_tensor(graph->value(graph->inputs[0]).type, 9);
  const auto want = ops::evaluate(*graph, std::span(&input, 1));
  ASSERT_TRUE(want.ok());
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const auto context = *Context::create(plan);
      write_input(context->input(0), input);
      for (int i = 0; i < 20; ++i) {
        if (!context->run().ok()) ++wrong;
        const Tensor y = *read_output(context->output(0));
        for (size_t e = 0; e < y.as<float>().size(); ++e) {
          wrong += std::fabs(y.as<float>()[e] - (*want)[0].as<float>()[e]) > 1e-3f;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(Device, PlansForOtherPictureSizesOnTheSameDeviceAnswerAsTheReferenceDoes) {
  // The first plan lives on, so the second finds its packed weights in the device's cache.
  auto graph = *graph::parse(kBlock, ops::op_table());
  const auto device = *Device::open("cpu", {.threads = 1});
  const auto first = *Plan::compile(device, graph);
  for (const graph::Shape& shape :
       {graph::Shape{2, 16, 20, 12}, graph::Shape{1, 16, 6, 50}, graph::Shape{1, 16, 1, 1}}) {
    ASSERT_TRUE(graph::set_input_type(graph, 0, {graph::DType::kF32, shape}).ok());
    compare_on(device, graph, 1e-4, graph::shape_text(shape));
  }
}

TEST(Device, RefusalsNameTheDevice) {
  EXPECT_NE(Device::open("npu:0").error().message.find("npu:0"), std::string::npos);
  EXPECT_EQ(Device::open("cpu:7").error().code, Code::kNotFound);
  EXPECT_EQ(Device::open("cpu:x").error().code, Code::kInvalid);
}

}  // namespace
}  // namespace ferry::runtime
