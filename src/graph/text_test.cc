#include "graph/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::graph {
namespace {

// Two small ops, so that the text form is tested without the real ones.
Result<std::vector<TensorType>> same_type(const InferArgs& args) {
  return std::vector<TensorType>{*args.inputs[0]};
}
Result<std::vector<TensorType>> halves(const InferArgs& args) {
  TensorType half = *args.inputs[0];
  half.shape[0] /= 2;
  return std::vector<TensorType>{half, half};
}
const AttrDef kAttrs[] = {{"k", Ints{1, 1}}, {"alpha", 0.5}, {"mode", std::string("x")}};
const OpDef kAdd{
    .name = "add", .min_inputs = 2, .max_inputs = 3, .attrs = kAttrs, .infer = same_type};
const OpDef kSplit{.name = "split", .outputs = 2, .infer = halves};
const OpDef* const kOps[] = {&kAdd, &kSplit};

constexpr std::string_view kText = R"(graph {
  input x: f32[4]
  input "odd name \" \\ 图": f32[4]
  const c: f32[4] = {0.1, -2.5e-30, inf, 3.0}
  const i: i64[2] = {9223372036854775807, -1}
  y: f32[4] = add(x, c, "odd name \" \\ 图") k=[2,3] alpha=0.25 mode="a b" @ "layer.0"
  z: f32[4] = add(y, y)
  a: f32[2], b: f32[2] = split(z)
  output a, b, i
}
)";

TEST(Text, PrintingWhatWasReadGivesTheSameText) {
  const auto graph = parse(kText, kOps);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(print(*graph), kText);
}

TEST(Text, StoragesRoundTripAndConstantsAreRounded) {
  constexpr std::string_view kStored = R"(graph {
  input x: f32[2] as u8(0.5, 12)
  const c: f32[2] as i8(0.5, 0.25) = {1.5, -31.75}
  y: f32[2] as bf16 = add(x, c)
  a: f32[1] as u8(2, 0), b: f32[1] = split(y)
  output a, b
}
)";
  const auto graph = parse(kStored, kOps);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(print(*graph), kStored);
  EXPECT_EQ(graph->value(find_value(*graph, "x")).storage, (Storage{DType::kU8, {0.5f}, 12}));
  const auto rounded = parse(
      "graph { input x: f32[2] const c: f32[2] as i8(0.5, 0.25) = {1.6, -99} y = add(x, c) "
      "output y }",
      kOps);
  ASSERT_TRUE(rounded.ok()) << rounded.error().message;
  EXPECT_EQ(rounded->value(find_value(*rounded, "c")).constant->as<float>()[0], 1.5f);
  EXPECT_EQ(rounded->value(find_value(*rounded, "c")).constant->as<float>()[1], -31.75f);
}

TEST(Text, RefusesStoragesThatNothingHas) {
  const auto graph_of = [](std::string_view storage) {
    return parse(fmt::format("graph {{ input x: f32[2] as {} y = add(x, x) output y }}", storage),
                 kOps);
  };
  EXPECT_TRUE(graph_of("u8(0.5, 255)").ok());
  for (const char* bad : {"u8", "u8(0.5)", "u8(0.5, 256)", "u8(0.5, -1)", "u8(0, 3)", "u8(nan, 3)",
                          "u8(1, 2, 3)", "i8(1, 1)", "bf16(1)", "i32", "f16", "u8(0.5, 1"}) {
    EXPECT_FALSE(graph_of(bad).ok()) << bad;
  }
}

TEST(Storage, RoundsToWhatItHolds) {
  const Storage bytes{DType::kU8, {0.5f}, 4};
  EXPECT_EQ(round_to(bytes, 0, 0.3f), 0.5f);
  EXPECT_EQ(round_to(bytes, 0, 0.25f), 0.0f);  // ties to even
  EXPECT_EQ(round_to(bytes, 0, -9.0f), -2.0f);
  EXPECT_EQ(round_to(bytes, 0, 1e9f), 125.5f);
  EXPECT_EQ(round_to(bytes, 0, std::nanf("")), 0.0f);
  EXPECT_EQ(round_to({DType::kBf16}, 0, 1.0f + 0x1p-8f), 1.0f);  // ties to even
  EXPECT_EQ(round_to({DType::kI8, {1.0f, 2.0f}}, 1, -1000.0f), -254.0f);
}

TEST(Text, ReadsValuesAttributesAndNames) {
  const auto graph = parse(kText, kOps);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ASSERT_EQ(graph->nodes.size(), 3u);
  EXPECT_EQ(graph->nodes[0].name, "layer.0");
  EXPECT_EQ(attr<Ints>(graph->nodes[0], "k"), (Ints{2, 3}));
  EXPECT_EQ(attr<double>(graph->nodes[1], "alpha"), 0.5);
  const ValueId c = find_value(*graph, "c");
  EXPECT_EQ(graph->value(c).constant->as<float>()[1], -2.5e-30f);
  EXPECT_TRUE(std::isinf(graph->value(c).constant->as<float>()[2]));
  EXPECT_EQ(graph->value(find_value(*graph, "i")).constant->as<int64_t>()[0], INT64_MAX);
}

TEST(Text, TypesMayBeLeftOutAndAbsentInputsAreUnderscores) {
  const auto graph =
      parse("graph { input x: f32[3] y = add(x, x, _) # note\n z=add(y,x) output z }", kOps);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->nodes[0].inputs.size(), 2u);
  EXPECT_EQ(graph->value(graph->outputs[0]).type.shape, Shape{3});
}

TEST(Text, GeneratorsGiveTheSameNumbersEverywhere) {
  const auto graph = parse(
      "graph { const a: f64[3] = uniform(1, 0, 1) const b: i32[3] = iota(5, -2) output a, b }",
      kOps);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  // splitmix64 seeded with 1 gives 0x910a2dec89025cc1 first (reference implementation by Vigna).
  EXPECT_EQ(graph->value(graph->outputs[0]).constant->as<double>()[0],
            static_cast<double>(0x910a2dec89025cc1u >> 11) * 0x1p-53);
  EXPECT_EQ(graph->value(graph->outputs[1]).constant->as<int32_t>()[2], 1);
}

TEST(Text, ElidedConstantsAreShortAndCannotBeReadBack) {
  const auto graph = parse("graph { const a: f32[40] = zeros() output a }", kOps);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const std::string text = print(*graph, ConstantText::kElided);
  EXPECT_NE(text.find("= ..."), std::string::npos);
  EXPECT_FALSE(parse(text, kOps).ok());
}

struct Refusal {
  std::string_view text;
  std::string_view message;
};

TEST(Text, RefusalsSayWhereAndWhy) {
  const Refusal cases[] = {
      {"", "expected a name"},
      {"graph {", "the text ends inside the graph"},
      {"graph { input x: f33[1] }", "unknown element type 'f33'"},
      {"graph { input x: f32[99999999999,99999999999] }", "GiB"},
      {"graph { input x: f32[-1] }", "negative dimension"},
      {"graph { const x: f32[2] = {1} }", "1 elements given, [2] has 2"},
      {"graph { const x: f32[1] = {1, 2} }", "more elements"},
      {"graph { const x: f32[1000000000] = zeros() }", "constants of more than"},
      {"graph { input x: f32[1] y = nop(x) output y }", "there is no op 'nop'"},
      {"graph { input x: f32[1] y = add(x) output y }", "has 1 inputs, needs 2 to 3"},
      {"graph { input x: f32[1] y = add(x, w) output y }", "'w' is not defined above"},
      {"graph { input x: f32[1] y = add(x, _) output y }", "input 1 is absent"},
      {"graph { input x: f32[1] x = add(x, x) output x }", "'x' is defined twice"},
      {"graph { input x: f32[1] y = add(x, x) size=3 output y }", "has no attribute 'size'"},
      {"graph { input x: f32[1] y = add(x, x) mode=3 output y }",
       "attribute 'mode' has the wrong type"},
      {"graph { input x: f32[1] y: f32[2] = add(x, x) output y }",
       "is written as f32[2], the op gives f32[1]"},
      {"graph { input x: f32[1] }", "the graph has no output"},
      {"graph { input x: f32[1] output x } more", "text behind"},
      {"graph { input \"x", "does not end"},
  };
  for (const Refusal& refusal : cases) {
    const auto graph = parse(refusal.text, kOps);
    ASSERT_FALSE(graph.ok()) << refusal.text;
    EXPECT_NE(graph.error().message.find(refusal.message), std::string::npos)
        << refusal.text << " -> " << graph.error().message;
  }
  EXPECT_NE(parse("graph {\n  input x: f33[1] }", kOps).error().message.find("line 2, column"),
            std::string::npos);
}

}  // namespace
}  // namespace ferry::graph
