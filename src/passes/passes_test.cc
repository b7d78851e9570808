// Runs every case of tests/passes/*.graph. A file is named after its pass ("pipeline": all of them)
// and holds cases:
//
//   == Title: a sentence
//   tolerance 1e-4                      (optional; absolute + relative, 1e-5 when left out)
//   size x=[2,3,16,24] y=[2,4,8,8]      (optional, any number: other types of the inputs to try)
//   graph { … }                         the graph before
//   -- becomes                          or `-- stays`: the pass has nothing to do
//   graph { … }                         the graph after, as printed, constants without their values
//
// Of every case is checked: the pass does what the text says; the verifier is content; outputs keep
// their names; a second run changes nothing; and the reference evaluation of both graphs agrees on
// random input, at every size.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "graph/text.h"
#include "ops/evaluate.h"
#include "ops/table.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/raw_heads.h"

namespace ferry::passes {
namespace {

using namespace graph;

struct Case {
  std::string pass, title;
  double tolerance = 1e-5;
  std::vector<std::string> sizes = {};
  std::string before = {};
  std::string after = {};  // empty: stays
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.pass << ": " << c.title; }

struct PassRow {
  std::string_view name;
  Result<int> (*run)(Graph&);
};

constexpr PassRow kPasses[] = {
    {"fold_constants", fold_constants},
    {"remove_no_ops", remove_no_ops},
    {"flatten_concat", flatten_concat},
    {"share_duplicates", share_duplicates},
    {"recognise_activations", recognise_activations},
    {"recognise_focus", recognise_focus},
    {"distribute_over_concat", distribute_over_concat},
    {"fold_batch_norm", fold_batch_norm},
    {"focus_to_conv", focus_to_conv},
    {"chain_max_pools", chain_max_pools},
    {"fuse_activation", fuse_activation},
    {"merge_siblings", merge_siblings},
    {"fold_upsample", fold_upsample},
    {"fuse_residual", fuse_residual},
    {"remove_dead", remove_dead},
    {"pipeline",
     [](Graph& graph) -> Result<int> {
       FERRY_TRY(report, optimise(graph));
       return report.rewrites();
     }},
};

std::string trimmed(const std::string& line) {
  const size_t start = line.find_first_not_of(" \t");
  if (start == std::string::npos) return {};
  return line.substr(start, line.find_last_not_of(" \t\r") - start + 1);
}

// Graph text, line by line: what constants hold is left out, as it is where the expected text is
// written.
std::string normal_form(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    line = trimmed(line);
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("const ")) line = trimmed(line.substr(0, line.find(" =")));
    out += line + "\n";
  }
  return out;
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::vector<Case> cases;
  std::ifstream in(path);
  std::string* block = nullptr;
  for (std::string line; std::getline(in, line);) {
    const std::string word = trimmed(line);
    if (line.starts_with("== ")) {
      cases.push_back({path.stem().string(), line.substr(3)});
      block = &cases.back().before;
    } else if (cases.empty() || word.empty() || word[0] == '#') {
      continue;
    } else if (word == "-- becomes") {
      block = &cases.back().after;
    } else if (word == "-- stays") {
      block = nullptr;
    } else if (word.starts_with("tolerance ")) {
      cases.back().tolerance = std::stod(word.substr(10));
    } else if (word.starts_with("size ")) {
      cases.back().sizes.push_back(word.substr(5));
    } else if (block != nullptr) {
      *block += line + "\n";
    }
  }
  return cases;
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  if (!std::filesystem::is_directory("tests/passes")) return out;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/passes")) {
    if (entry.path().extension() == ".graph") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    for (Case& c : read_cases(path)) out.push_back(std::move(c));
  }
  return out;
}

// "x=[1,2] y=[3]"
Status resize_inputs(Graph& graph, const std::string& text) {
  std::istringstream in(text);
  for (std::string item; in >> item;) {
    const size_t equals = item.find('=');
    const ValueId id = find_value(graph, item.substr(0, equals));
    if (id == kNone) return error(Code::kInvalid, "no input '{}'", item);
    Shape& shape = graph.value(id).type.shape;
    shape.clear();
    std::istringstream dims(item.substr(equals + 2));
    for (std::string dim; std::getline(dims, dim, ',');) shape.push_back(std::stoll(dim));
  }
  return infer_types(graph);
}

std::vector<Tensor> random_inputs(const Graph& graph) {
  std::mt19937 random(7);
  std::vector<Tensor> out;
  for (const ValueId id : graph.inputs) {
    auto tensor = Tensor::make(graph.value(id).type);
    if (graph.value(id).type.dtype == DType::kF32) {
      for (float& v : tensor->mut<float>()) {
        v = static_cast<float>(random()) / 4294967296.0f * 6 - 3;
      }
    }
    out.push_back(*tensor);
  }
  return out;
}

void expect_equal_outputs(const Graph& before, const Graph& after, double tolerance) {
  const std::vector<Tensor> inputs = random_inputs(before);
  const auto want = ops::evaluate(before, inputs);
  const auto got = ops::evaluate(after, inputs);
  ASSERT_TRUE(want.ok()) << want.error().message;
  ASSERT_TRUE(got.ok()) << got.error().message;
  ASSERT_EQ(want->size(), got->size());
  for (size_t i = 0; i < want->size(); ++i) {
    const Tensor& w = (*want)[i];
    const Tensor& g = (*got)[i];
    ASSERT_EQ(type_text(w.type()), type_text(g.type()));
    if (w.dtype() != DType::kF32) {
      EXPECT_TRUE(std::equal(w.bytes().begin(), w.bytes().end(), g.bytes().begin()));
      continue;
    }
    for (size_t k = 0; k < w.as<float>().size(); ++k) {
      const double a = w.as<float>()[k], b = g.as<float>()[k];
      ASSERT_TRUE(std::isfinite(a)) << "output " << i << " element " << k << " is " << a;
      ASSERT_LE(std::fabs(a - b), tolerance * (1 + std::fabs(a)))
          << "output " << i << " element " << k << ": " << a << " before, " << b << " after";
    }
  }
}

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> out;
  for (const ValueId id : graph.outputs) out.push_back(graph.value(id).name);
  return out;
}

class PassCase : public testing::TestWithParam<Case> {};

TEST_P(PassCase, DoesWhatItsTextSays) {
  const Case& c = GetParam();
  SCOPED_TRACE("tests/passes/" + c.pass + ".graph: " + c.title);
  const PassRow* pass = nullptr;
  for (const PassRow& row : kPasses) {
    if (row.name == c.pass) pass = &row;
  }
  ASSERT_NE(pass, nullptr) << "no pass has this file's name";
  const auto before = parse(c.before, ops::op_table());
  ASSERT_TRUE(before.ok()) << before.error().message;

  Graph after = *before;
  const auto rewrites = pass->run(after);
  ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
  const Status verified = verify(after);
  ASSERT_TRUE(verified.ok()) << verified.error().message;
  EXPECT_EQ(output_names(*before), output_names(after));
  const std::string text = print(after, ConstantText::kElided);
  if (c.after.empty()) {
    EXPECT_EQ(normal_form(print(*before)), normal_form(text)) << "the pass should have let this be";
    EXPECT_EQ(*rewrites, 0);
  } else {
    EXPECT_EQ(normal_form(c.after), normal_form(text));
    EXPECT_GT(*rewrites, 0);
  }
  expect_equal_outputs(*before, after, c.tolerance);

  // A pass leaves nothing for its second run; the list of them may, where a late pass makes work
  // for an early one.
  if (c.pass != "pipeline") {
    Graph twice = after;
    const auto again = pass->run(twice);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, 0) << "a second run still finds something:\n"
                         << print(twice, ConstantText::kElided);
    EXPECT_EQ(text, print(twice, ConstantText::kElided));
  }

  for (const std::string& size : c.sizes) {
    SCOPED_TRACE("size " + size);
    Graph resized_before = *before, resized_after = after;
    const Status first = resize_inputs(resized_before, size);
    ASSERT_TRUE(first.ok()) << first.error().message;
    const Status second = resize_inputs(resized_after, size);
    ASSERT_TRUE(second.ok()) << second.error().message;
    expect_equal_outputs(resized_before, resized_after, c.tolerance);
  }
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string out = info.param.pass + "_";
  bool upper = true;
  for (const char c : info.param.title) {
    if (!std::isalnum(static_cast<unsigned char>(c))) {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Files, PassCase, testing::ValuesIn(all_cases()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PassCase);

TEST(Passes, EveryPassHasAFileOfCases) {
  const std::vector<Case> cases = all_cases();
  for (const PassRow& row : kPasses) {
    const bool found =
        std::any_of(cases.begin(), cases.end(), [&](const Case& c) { return c.pass == row.name; });
    EXPECT_TRUE(found) << "tests/passes/" << row.name << ".graph is missing or empty";
  }
}

TEST(Passes, EveryPassOfThePipelineIsTested) {
  for (const std::string_view name : pass_names()) {
    if (name == "recognise_detect") continue;  // recognise_detect_test.cc
    const bool found = std::any_of(std::begin(kPasses), std::end(kPasses),
                                   [&](const PassRow& row) { return row.name == name; });
    EXPECT_TRUE(found) << name;
  }
}

constexpr std::string_view kSmall = R"(graph {
  input x: f32[1,2,4,4]
  const w: f32[2,2,1,1] = uniform(1, -1, 1)
  a = conv2d(x, w)
  b = silu(a)
  output b
})";

TEST(Pipeline, ReportsWhatEveryPassDid) {
  auto graph = parse(kSmall, ops::op_table());
  const auto report = optimise(*graph);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->runs.size(), pass_names().size());
  for (const PassRun& run : report->runs) {
    const bool fused = run.name == "fuse_activation";
    EXPECT_EQ(run.rewrites, fused ? 1 : 0) << run.name;
    EXPECT_EQ(run.nodes_before - run.nodes_after, fused ? 1 : 0) << run.name;
  }
}

TEST(Pipeline, LeavesOutWhatIsDisabled) {
  auto graph = parse(kSmall, ops::op_table());
  const auto report = optimise(*graph, {.disable = {"fuse_activation"}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->rewrites(), 0);
  EXPECT_EQ(graph->nodes.size(), 2u);
}

TEST(Pipeline, DumpsTheGraphBeforeAndAfterTheNamedPass) {
  auto graph = parse(kSmall, ops::op_table());
  std::vector<std::string> dumps;
  const auto report =
      optimise(*graph, {.dump = {"fuse_activation"},
                        .print = [&](std::string_view text) { dumps.emplace_back(text); }});
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(dumps.size(), 2u);
  EXPECT_NE(dumps[0].find("# before fuse_activation\n"), std::string::npos);
  EXPECT_NE(dumps[0].find("silu(a)"), std::string::npos);
  EXPECT_NE(dumps[1].find("# after fuse_activation\n"), std::string::npos);
  EXPECT_EQ(dumps[1].find("silu(a)"), std::string::npos);
}

TEST(Pipeline, RefusesANameThatNoPassHasAndListsThem) {
  auto graph = parse(kSmall, ops::op_table());
  for (const PassOptions& options :
       {PassOptions{.disable = {"fuse_acivation"}}, PassOptions{.dump = {"fuse_acivation"}}}) {
    const auto report = optimise(*graph, options);
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().message.find("fuse_acivation"), std::string::npos);
    for (const std::string_view name : pass_names()) {
      EXPECT_NE(report.error().message.find(name), std::string::npos) << name;
    }
  }
}

TEST(RawHeads, ReplaceTheDetectLayerAndSayWhatItKnew) {
  auto graph = parse(R"(graph {
    input x: f32[1,3,8,8]
    const w: f32[14,3,1,1] = uniform(1, -1, 1)
    p3 = conv2d(x, w)
    p4 = conv2d(x, w) strides=[2,2]
    y = yolo_detect(p3, p4) anchors=[10,13,16,30,30,61,62,45] strides=[8,16] classes=2
    output y, x
  })",
                     ops::op_table());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto head = expose_raw_heads(*graph);
  ASSERT_TRUE(head.ok()) << head.error().message;
  ASSERT_TRUE(verify(*graph).ok());
  EXPECT_EQ(output_names(*graph), (std::vector<std::string>{"p3", "p4"}));
  EXPECT_EQ(head->classes, 2);
  EXPECT_EQ(head->strides, (std::vector<double>{8, 16}));
  const std::vector<std::vector<std::array<double, 2>>> anchors = {{{10, 13}, {16, 30}},
                                                                   {{30, 61}, {62, 45}}};
  EXPECT_EQ(head->anchors, anchors);
}

TEST(RawHeads, OfAGraphWithoutADetectLayerAreRefused) {
  auto graph = parse(kSmall, ops::op_table());
  const auto head = expose_raw_heads(*graph);
  ASSERT_FALSE(head.ok());
  EXPECT_NE(head.error().message.find("'b'"), std::string::npos) << head.error().message;
  EXPECT_NE(head.error().message.find("silu"), std::string::npos) << head.error().message;
  EXPECT_EQ(output_names(*graph), (std::vector<std::string>{"b"}));
}

}  // namespace
}  // namespace ferry::passes
