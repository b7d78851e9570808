// What import_onnx makes of small hand-made files, and what it says about broken ones.
#include "import/onnx/import_onnx.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/op_def.h"
#include "import/onnx/test_proto.h"
#include "ops/evaluate.h"

namespace ferry::import {
namespace {

namespace make = onnx::make;
using graph::Tensor;

Result<Model> open(const std::string& bytes, const ImportOptions& options = {}) {
  auto owner = std::make_shared<std::string>(bytes);
  const auto span = std::as_bytes(std::span(owner->data(), owner->size()));
  return import_onnx(span, owner, options);
}

std::string refusal(const std::string& bytes, const ImportOptions& options = {}) {
  const auto model = open(bytes, options);
  return model.ok() ? "imported" : model.error().message;
}

// Does `text` hold every part?
testing::AssertionResult says(const std::string& text, std::vector<std::string> parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
    }
  }
  return testing::AssertionSuccess();
}

std::vector<float> run(const Model& model, const std::vector<float>& x) {
  const auto& type = model.graph.value(model.graph.inputs[0]).type;
  const Tensor input = Tensor::of<float>(type.shape, x);
  const auto out = ops::evaluate(model.graph, std::span(&input, 1));
  EXPECT_TRUE(out.ok()) << out.error().message;
  const auto values = (*out)[0].as<float>();
  return {values.begin(), values.end()};
}

// y = relu(x), x float[1,2].
make::Graph relu_graph() {
  return {.nodes = {make::node("Relu", {"x"}, {"y"}, "r")},
          .initializers = {},
          .inputs = {make::value("x", 1, {1, 2})},
          .outputs = {make::value("y", 1, {1, 2})}};
}

// y = x + w, with the initializer given.
std::string add_model(const make::Message& w) {
  return make::model(make::Graph{.nodes = {make::node("Add", {"x", "w"}, {"y"}, "a")},
                                 .initializers = {w},
                                 .inputs = {make::value("x", 1, {1, 2})},
                                 .outputs = {make::value("y", 1, {1, 2})}});
}

TEST(ImportOnnx, nodes_may_stand_before_their_producers) {
  const auto model = open(make::model(
      make::Graph{.nodes = {make::node("Add", {"b", "x"}, {"y"}, "last"),
                            make::node("Mul", {"a", "a"}, {"b"}), make::node("Relu", {"x"}, {"a"})},
                  .initializers = {},
                  .inputs = {make::value("x", 1, {1, 2})},
                  .outputs = {make::value("y", 1, {1, 2})}}));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(run(*model, {3, -2}), (std::vector<float>{12, -2}));
}

TEST(ImportOnnx, names_of_inputs_outputs_and_nodes_are_kept) {
  const auto model = open(make::model(relu_graph()));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto& graph = model->graph;
  EXPECT_EQ(graph.value(graph.inputs[0]).name, "x");
  EXPECT_EQ(graph.value(graph.outputs[0]).name, "y");
  EXPECT_EQ(graph.nodes[0].name, "r");
  EXPECT_EQ(model->detector.head, Head::kNone);
  EXPECT_EQ(model->source.format, "ONNX opset 13");
  EXPECT_EQ(model->source.producer, "ferry tests");
}

TEST(ImportOnnx, half_precision_is_computed_in_f32_and_its_casts_go) {
  // x -> half -> + 1.5 -> float; 0x3e00 is 1.5 in half precision.
  const auto model = open(make::model(
      make::Graph{.nodes = {make::node("Cast", {"x"}, {"h"}, "", {make::attribute("to", 10)}),
                            make::node("Add", {"h", "w"}, {"s"}),
                            make::node("Cast", {"s"}, {"y"}, "", {make::attribute("to", 1)})},
                  .initializers = {make::tensor("w", 10, {1}, std::string("\x00\x3e", 2))},
                  .inputs = {make::value("x", 1, {1, 2})},
                  .outputs = {make::value("y", 1, {1, 2})}}));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->graph.nodes.size(), 1u);
  EXPECT_EQ(model->graph.value(model->graph.outputs[0]).name, "y");
  EXPECT_EQ(model->source.format, "ONNX opset 13, f16 weights");
  // 100000 has no half, but f32 is what the graph computes in.
  EXPECT_EQ(run(*model, {1, 100000}), (std::vector<float>{2.5f, 100001.5f}));
}

TEST(ImportOnnx, every_way_to_store_numbers_gives_the_same_ones) {
  const auto with = [](const make::Message& w) {
    const auto model = open(add_model(w));
    EXPECT_TRUE(model.ok()) << model.error().message;
    return run(*model, {0, 0});
  };
  const std::vector<float> expected = {1.5f, -2};
  const auto head = [](int64_t type) {
    return make::Message().varint(1, 2).varint(2, type).text(8, "w");
  };
  EXPECT_EQ(with(make::floats("w", {2}, expected)), expected);
  EXPECT_EQ(with(head(1).text(4, make::raw_floats(expected))), expected);   // packed float_data
  EXPECT_EQ(with(head(1).fixed32(4, 1.5f).fixed32(4, -2.0f)), expected);    // one by one
  EXPECT_EQ(with(head(10).varint(5, 0x3e00).varint(5, 0xc000)), expected);  // halves as int32_data
  EXPECT_EQ(with(head(16).text(9, std::string("\xc0\x3f\x00\xc0", 4))), expected);  // bfloat16
  const double doubles[] = {1.5, -2};
  EXPECT_EQ(with(head(11).text(9, {reinterpret_cast<const char*>(doubles), 16})), expected);
  EXPECT_EQ(with(head(11).text(10, {reinterpret_cast<const char*>(doubles), 16})), expected);
}

TEST(ImportOnnx, weights_view_the_file_where_they_lie_aligned) {
  for (int shift = 0; shift < 4; ++shift) {
    make::Graph graph = relu_graph();
    graph.nodes = {make::node("Add", {"x", "w"}, {"y"})};
    graph.initializers = {make::floats("w", {2}, {1, 2})};
    auto file = std::make_shared<std::string>(
        make::model(graph.message(), 13, {{"pad", std::string(static_cast<size_t>(shift), ' ')}}));
    // The metadata stands behind the graph: move the bytes instead.
    file->insert(0, make::Message().text(6, std::string(static_cast<size_t>(shift), ' ')).bytes);
    const auto model =
        import_onnx(std::as_bytes(std::span(file->data(), file->size())), file, ImportOptions{});
    ASSERT_TRUE(model.ok()) << model.error().message;
    const graph::ValueId w = graph::find_value(model->graph, "w");
    const auto* data = static_cast<const char*>(model->graph.value(w).constant->data());
    const char* in_file = file->data() + file->find(make::raw_floats({1, 2}));
    const bool aligned = reinterpret_cast<uintptr_t>(in_file) % 4 == 0;
    EXPECT_EQ(data == in_file, aligned) << "shift " << shift;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4, 0u);
    EXPECT_EQ(run(*model, {10, 20}), (std::vector<float>{11, 22}));
  }
}

// --- shapes --------------------------------------------------------------------------------------

// Reshape to [batch, -1] with the batch taken from the input's own shape, as exporters write it.
make::Graph flatten_graph(const std::vector<int64_t>& picture) {
  return {.nodes = {make::node("Shape", {"x"}, {"dims"}),
                    make::node("Gather", {"dims", "zero"}, {"n"}, "", {make::attribute("axis", 0)}),
                    make::node("Unsqueeze", {"n", "axes"}, {"n1"}),
                    make::node("Concat", {"n1", "rest"}, {"to"}, "", {make::attribute("axis", 0)}),
                    make::node("Reshape", {"x", "to"}, {"y"})},
          .initializers = {make::tensor("zero", 7, {}, make::raw_ints({0})),
                           make::ints("axes", {0}), make::ints("rest", {-1})},
          .inputs = {make::value("x", 1, picture)},
          .outputs = {make::value("y", 1, {-2, -2})}};
}

TEST(ImportOnnx, shape_arithmetic_is_computed_while_importing) {
  const auto model =
      open(make::model(flatten_graph({-2, -2, -2, -2})), {.height = 4, .width = 6, .batch = 2});
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ(model->graph.nodes.size(), 1u);
  EXPECT_EQ(model->graph.nodes[0].op->name, "reshape");
  EXPECT_EQ(graph::type_text(model->graph.value(model->graph.inputs[0]).type), "f32[2,3,4,6]");
  EXPECT_EQ(graph::type_text(model->graph.value(model->graph.outputs[0]).type), "f32[2,72]");
}

TEST(ImportOnnx, dynamic_axes_are_640_or_what_the_metadata_says_when_nobody_asks) {
  const auto size = [](const std::string& file) {
    const auto model = open(file);
    EXPECT_TRUE(model.ok()) << model.error().message;
    return graph::type_text(model->graph.value(model->graph.inputs[0]).type);
  };
  EXPECT_EQ(size(make::model(flatten_graph({-1, 3, -1, -1}))), "f32[1,3,640,640]");
  EXPECT_EQ(
      size(make::model(flatten_graph({-2, 3, -2, -2}).message(), 13, {{"imgsz", "[320, 416]"}})),
      "f32[1,3,320,416]");
}

TEST(ImportOnnx, a_static_model_refuses_another_size_and_says_which_it_has) {
  const std::string file = make::model(flatten_graph({1, 3, 32, 64}));
  EXPECT_TRUE(open(file).ok());
  EXPECT_TRUE(open(file, {.height = 32, .width = 64}).ok());
  EXPECT_TRUE(says(refusal(file, {.height = 64, .width = 64}), {"pictures of [1,3,32,64]"}));
  EXPECT_TRUE(says(refusal(file, {.batch = 2}), {"[2,3,32,64]"}));
}

TEST(ImportOnnx, an_if_with_a_known_condition_becomes_its_branch) {
  const auto branch = [](const char* op) {
    return make::Graph{.nodes = {make::node(op, {"x"}, {"inner"})},
                       .initializers = {},
                       .inputs = {},
                       .outputs = {make::value("inner", 1, {1, 2})}}
        .message();
  };
  const auto with = [&](const std::string& condition) {
    return make::model(
        make::Graph{.nodes = {make::node("If", {"c"}, {"y"}, "choice",
                                         {make::graph_attribute("then_branch", branch("Relu")),
                                          make::graph_attribute("else_branch", branch("Neg"))})},
                    .initializers = {make::tensor("c", 9, {}, condition)},
                    .inputs = {make::value("x", 1, {1, 2})},
                    .outputs = {make::value("y", 1, {1, 2})}});
  };
  const auto yes = open(with(std::string(1, '\1'))), no = open(with(std::string(1, '\0')));
  ASSERT_TRUE(yes.ok()) << yes.error().message;
  ASSERT_TRUE(no.ok()) << no.error().message;
  EXPECT_EQ(run(*yes, {3, -2}), (std::vector<float>{3, 0}));
  EXPECT_EQ(run(*no, {3, -2}), (std::vector<float>{-3, 2}));
  EXPECT_EQ(yes->graph.value(yes->graph.outputs[0]).name, "y");
}

// --- refusals ------------------------------------------------------------------------------------

TEST(ImportOnnx, a_cycle_is_refused_by_the_names_on_it) {
  make::Graph graph = relu_graph();
  graph.nodes = {
      make::node("Add", {"x", "c"}, {"a"}, "first"), make::node("Relu", {"a"}, {"b"}, "second"),
      make::node("Relu", {"b"}, {"c"}, "third"), make::node("Relu", {"c"}, {"y"}, "out")};
  const std::string why = refusal(make::model(graph));
  EXPECT_TRUE(says(why, {"cycle"}));
  for (const char* name : {"first", "second", "third"}) EXPECT_TRUE(says(why, {name}));
  EXPECT_FALSE(says(why, {"'out'"}));
}

TEST(ImportOnnx, a_name_that_nothing_produces_is_refused_with_its_reader) {
  make::Graph graph = relu_graph();
  graph.nodes = {make::node("Add", {"x", "ghost"}, {"y"}, "reader")};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"'reader' (Add)", "'ghost'"}));
  graph = relu_graph();
  graph.outputs.push_back(make::value("nowhere", 1, {1}));
  EXPECT_TRUE(says(refusal(make::model(graph)), {"'nowhere'"}));
}

TEST(ImportOnnx, names_that_are_produced_twice_are_refused) {
  make::Graph graph = relu_graph();
  graph.nodes.push_back(make::node("Neg", {"x"}, {"y"}, "again"));
  EXPECT_TRUE(says(refusal(make::model(graph)), {"'y' is produced twice", "'again'"}));
  graph = relu_graph();
  graph.initializers = {make::floats("w", {1}, {1}), make::floats("w", {1}, {2})};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"two initializers are named 'w'"}));
  graph = relu_graph();
  graph.inputs.push_back(graph.inputs[0]);
  EXPECT_TRUE(says(refusal(make::model(graph)), {"two inputs are named 'x'"}));
  graph = relu_graph();
  graph.initializers = {make::floats("y", {1}, {1})};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"'y' is produced twice"}));
}

TEST(ImportOnnx, unknown_ops_and_domains_are_refused_all_at_once) {
  make::Graph graph = relu_graph();
  auto foreign = make::node("Fused", {"b"}, {"c"}, "theirs").text(7, "com.example");
  graph.nodes = {make::node("Einsum9", {"x"}, {"a"}, "e1"),
                 make::node("Einsum9", {"a"}, {"b"}, "e2"), foreign,
                 make::node("NonMaxSuppression", {"c"}, {"y"}, "nms")};
  const std::string why = refusal(make::model(graph));
  EXPECT_TRUE(says(why, {"'e1' (Einsum9) and 1 more like it"}));
  EXPECT_TRUE(says(why, {"'theirs' (Fused) is from the domain 'com.example'"}));
  EXPECT_TRUE(says(why, {"export without NMS"}));
}

TEST(ImportOnnx, ops_that_no_output_needs_do_not_matter) {
  make::Graph graph = relu_graph();
  graph.nodes.push_back(make::node("Einsum9", {"x"}, {"unused"}));
  EXPECT_EQ(refusal(make::model(graph)), "imported");
}

TEST(ImportOnnx, a_function_is_refused_with_what_to_do) {
  make::Graph graph = relu_graph();
  graph.nodes = {make::node("Mine", {"x"}, {"y"}, "call").text(7, "local")};
  std::string file = make::model(graph);
  file += make::Message().message(25, make::Message().text(1, "Mine").text(10, "local")).bytes;
  EXPECT_TRUE(says(refusal(file), {"'call'", "inline it"}));
}

TEST(ImportOnnx, loops_and_unknown_conditions_are_refused) {
  make::Graph graph = relu_graph();
  graph.nodes = {make::node("Loop", {"", "", "x"}, {"y"}, "around")};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"'around'", "simplify"}));
  graph.nodes = {make::node("Cast", {"x"}, {"c"}, "", {make::attribute("to", 9)}),
                 make::node("If", {"c"}, {"y"}, "maybe")};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"'maybe'", "simplify"}));
}

TEST(ImportOnnx, sparse_tensors_are_refused) {
  make::Message graph = relu_graph().message();
  graph.message(15, make::Message());
  EXPECT_TRUE(says(refusal(make::model(graph)), {"sparse"}));
}

TEST(ImportOnnx, data_that_does_not_fill_its_shape_is_refused_with_both_lengths) {
  EXPECT_TRUE(says(refusal(add_model(make::tensor("w", 1, {2}, "1234567"))),
                   {"'w'", "7 bytes", "needs 8"}));
  EXPECT_TRUE(
      says(refusal(add_model(make::Message().varint(1, 2).varint(2, 1).text(8, "w").fixed32(4, 1))),
           {"holds 1 elements", "needs 2"}));
  EXPECT_TRUE(
      says(refusal(add_model(make::tensor("w", 1, {0x7fffffffffffffff, 0x7fffffffffffffff}, ""))),
           {"'w'"}));
  EXPECT_TRUE(says(refusal(add_model(make::tensor("w", 1, {-1}, ""))), {"negative"}));
  EXPECT_TRUE(says(refusal(add_model(make::tensor("w", 8, {2}, ""))), {"string"}));
  EXPECT_TRUE(says(refusal(add_model(make::tensor("w", 77, {2}, ""))), {"77"}));
}

TEST(ImportOnnx, inputs_that_no_picture_can_have_are_refused) {
  make::Graph graph = relu_graph();
  graph.inputs = {make::value("x", 1, {1, -7})};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"input 'x'"}));
  graph.inputs = {make::value("x", 1, {1, 0})};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"must be positive"}));
  graph.inputs = {make::value("x", 1, {-2, 5})};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"dynamic axes"}));
  graph.inputs = {make::value("x", 1, {1 << 30, 1 << 30, 1 << 30})};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"GiB"}));
  graph.inputs = {make::Message().text(1, "x")};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"no tensor"}));
}

TEST(ImportOnnx, versions_that_ferry_does_not_read_are_named) {
  EXPECT_TRUE(says(refusal(make::model(relu_graph(), 8)), {"opset 8"}));
  EXPECT_TRUE(says(refusal(make::model(relu_graph().message(), 13, {}, 2)), {"IR version 2"}));
  EXPECT_TRUE(says(refusal(make::model(relu_graph().message(), 13, {}, 99)), {"IR version 99"}));
  const auto newer = open(make::model(relu_graph(), 23));
  ASSERT_TRUE(newer.ok()) << newer.error().message;
  EXPECT_TRUE(says(newer->source.warnings.at(0), {"23"}));
}

TEST(ImportOnnx, every_truncation_is_refused_or_opens_a_smaller_model_and_nothing_crashes) {
  const std::string file = make::model(flatten_graph({1, 3, 4, 6}), 13, {{"names", "['a']"}});
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string why = refusal(file.substr(0, size));
    EXPECT_NE(why, "") << size;
    if (size < 20) {
      EXPECT_NE(why, "imported") << size;
    }
  }
}

TEST(ImportOnnx, every_flipped_byte_is_read_without_harm) {
  const std::string file = make::model(flatten_graph({1, 3, 4, 6}), 13, {{"names", "['a']"}});
  for (size_t i = 0; i < file.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string broken = file;
      broken[i] = static_cast<char>(broken[i] ^ change);
      (void)open(broken);  // the sanitizers watch
    }
  }
}

TEST(ImportOnnx, files_that_are_something_else_are_called_by_their_name) {
  EXPECT_TRUE(says(refusal(""), {"empty"}));
  EXPECT_TRUE(says(refusal("<!DOCTYPE html><html><title>Not Found</title></html>"), {"web page"}));
  EXPECT_TRUE(
      says(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), {"LFS"}));
  EXPECT_TRUE(says(refusal("some text"), {"no ONNX file"}));
}

TEST(ImportOnnx, small_files_cannot_make_large_constants) {
  // 2^40 bytes from thirty.
  make::Graph graph = relu_graph();
  graph.nodes = {make::node("ConstantOfShape", {"dims"}, {"big"}, "bomb"),
                 make::node("Add", {"x", "big"}, {"y"})};
  graph.initializers = {make::ints("dims", {1 << 20, 1 << 20})};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"'bomb'"}));
  graph.initializers = {make::ints("dims", {1 << 15, 1 << 15})};
  EXPECT_TRUE(says(refusal(make::model(graph)), {"'bomb'"}));
}

// --- external data -------------------------------------------------------------------------------

class ExternalData : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("ferry_onnx_{}", getpid());
    std::filesystem::create_directories(folder_ / "model" / "weights");
    write("model/weights/w.bin", std::string(16, '\0') + make::raw_floats({1, 2}));
    write("outside.bin", make::raw_floats({1, 2}));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  // The outcome for w in `location`.
  std::string with(const std::string& location, const std::string& offset,
                   const std::string& length) {
    make::Message w = make::Message().varint(1, 2).varint(2, 1).text(8, "w").varint(14, 1);
    const auto entry = [&](const char* key, const std::string& value) {
      if (!value.empty()) w.message(13, make::Message().text(1, key).text(2, value));
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    write("model/m.onnx", add_model(w));
    const auto model = import_onnx((folder_ / "model" / "m.onnx").string());
    if (!model.ok()) return model.error().message;
    return fmt::format("{}", fmt::join(run(*model, {10, 20}), " "));
  }
  std::filesystem::path folder_;
};

TEST_F(ExternalData, lies_in_a_file_inside_the_models_folder) {
  EXPECT_EQ(with("weights/w.bin", "16", "8"), "11 22");
  EXPECT_EQ(with("weights/w.bin", "16", ""), "11 22");
  EXPECT_EQ(with("./weights/w.bin", "16", "8"), "11 22");
}

TEST_F(ExternalData, outside_of_the_folder_is_refused_however_it_is_written) {
  std::filesystem::create_symlink(folder_ / "outside.bin", folder_ / "model" / "link.bin");
  for (const std::string& location :
       {std::string("../outside.bin"), std::string("weights/../../outside.bin"),
        (folder_ / "outside.bin").string(), std::string("link.bin"), std::string("/dev/zero")}) {
    EXPECT_TRUE(says(with(location, "", "8"), {"leads out of the model's folder"})) << location;
  }
}

TEST_F(ExternalData, that_is_absent_or_short_is_refused) {
  EXPECT_TRUE(says(with("gone.bin", "", ""), {"'gone.bin'", "'w'"}));
  EXPECT_TRUE(says(with("weights/w.bin", "17", ""), {"truncated"}));
  EXPECT_TRUE(says(with("weights/w.bin", "18446744073709551615", "8"), {"truncated"}));
  EXPECT_TRUE(says(with("weights/w.bin", "0", "18446744073709551615"), {"truncated"}));
  EXPECT_TRUE(says(with("weights/w.bin", "-1", ""), {"not a number"}));
  EXPECT_TRUE(says(with("weights/w.bin", "16", "4"), {"needs 8"}));
  EXPECT_TRUE(says(with("", "", ""), {"location"}));
  EXPECT_NE(with("weights", "", ""), "11 22");
}

TEST_F(ExternalData, needs_a_path) {
  make::Message w = make::Message().varint(1, 2).varint(2, 1).text(8, "w").varint(14, 1);
  w.message(13, make::Message().text(1, "location").text(2, "weights/w.bin"));
  EXPECT_TRUE(says(refusal(add_model(w)), {"open the model by its path"}));
}

}  // namespace
}  // namespace ferry::import
