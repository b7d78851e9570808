#include "cli/inspect_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "cli/print.h"
#include "graph/op_def.h"

namespace ferry::cli {
namespace {

using graph::Graph;
using graph::Node;
using nlohmann::json;

bool is_parameter(const graph::Value& value) {
  if (!value.constant) return false;
  using enum graph::DType;
  const graph::DType dtype = value.type.dtype;
  return dtype == kF32 || dtype == kF16 || dtype == kBf16 || dtype == kF64;
}

// The parameters that a node uses: its floating constants, but not the statistics of a batch norm
// (inputs 3 and 4).
std::set<graph::ValueId> parameters_of(const Graph& graph, const Node& node) {
  std::set<graph::ValueId> parameters;
  const size_t end = node.op->name == "batch_norm" ? 3 : node.inputs.size();
  for (size_t i = 0; i < std::min(end, node.inputs.size()); ++i) {
    const graph::ValueId id = node.inputs[i];
    if (id != graph::kNone && is_parameter(graph.value(id))) parameters.insert(id);
  }
  return parameters;
}

int64_t params_of(const Graph& graph, const Node& node) {
  int64_t params = 0;
  for (const graph::ValueId id : parameters_of(graph, node))
    params += graph::elements(graph.value(id).type.shape);
  return params;
}

std::string first_output_shape(const Graph& graph, const Node& node) {
  std::string text = graph::shape_text(graph.value(node.outputs[0]).type.shape);
  if (node.outputs.size() > 1) text += fmt::format(" and {} more", node.outputs.size() - 1);
  return text;
}

// "10x13 16x30 33x23"
std::string anchors_text(const std::vector<std::array<double, 2>>& level) {
  std::vector<std::string> pairs;
  for (const auto& [width, height] : level)
    pairs.push_back(fmt::format("{:g}x{:g}", width, height));
  return fmt::format("{}", fmt::join(pairs, " "));
}

// "a, b, c" broken into lines that begin with `indent`.
std::string wrapped(const std::vector<std::string>& words, std::string_view indent) {
  constexpr size_t kColumns = 110;
  std::string text, line;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = printable(words[i]) + (i + 1 < words.size() ? "," : "");
    if (!line.empty() && indent.size() + line.size() + 1 + word.size() > kColumns) {
      text += line + "\n" + std::string(indent);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return text + line;
}

std::vector<std::string> value_texts(const Graph& graph, const std::vector<graph::ValueId>& ids) {
  std::vector<std::string> texts;
  for (const graph::ValueId id : ids) {
    texts.push_back(printable(graph.value(id).name) + " " + graph::type_text(graph.value(id).type));
  }
  return texts;
}

std::string node_table(const Graph& graph) {
  struct Row {
    std::string name, op, shape, params, macs;
  };
  std::vector<Row> rows = {{"node", "op", "output", "params", "MACs"}};
  const auto count = [](int64_t n) { return n == 0 ? std::string("-") : fmt::format("{}", n); };
  for (const Node& node : graph.nodes) {
    rows.push_back({printable(node.name), std::string(node.op->name),
                    first_output_shape(graph, node), count(params_of(graph, node)),
                    count(graph::macs(graph, node))});
  }
  const auto width = [&](std::string Row::*cell) {
    size_t widest = 0;
    for (const Row& row : rows) widest = std::max(widest, (row.*cell).size());
    return std::min<size_t>(widest, 60);
  };
  const size_t name = width(&Row::name), op = width(&Row::op), shape = width(&Row::shape);
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("  {:<{}}  {:<{}}  {:<{}}  {:>10}  {:>12}\n", row.name, name, row.op, op,
                        row.shape, shape, row.params, row.macs);
  }
  return text;
}

json values_json(const Graph& graph, const std::vector<graph::ValueId>& ids) {
  json values = json::array();
  for (const graph::ValueId id : ids) {
    const graph::Value& value = graph.value(id);
    values.push_back({{"name", value.name},
                      {"dtype", graph::dtype_name(value.type.dtype)},
                      {"shape", value.type.shape}});
  }
  return values;
}

std::string dumped(const json& value) {
  return value.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

json file_json(const InspectedFile& file) {
  return {{"file", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}};
}

}  // namespace

Totals totals_of(const import::Model& model) {
  const Graph& graph = model.graph;
  Totals totals{.nodes = static_cast<int64_t>(graph.nodes.size()), .macs = graph::macs(graph)};
  std::set<graph::ValueId> seen;
  for (const Node& node : graph.nodes) {
    for (const graph::ValueId id : parameters_of(graph, node)) {
      if (seen.insert(id).second) totals.params += graph::elements(graph.value(id).type.shape);
    }
  }
  const graph::Shape* input =
      graph.inputs.empty() ? nullptr : &graph.value(graph.inputs[0]).type.shape;
  const int64_t batch = input && !input->empty() ? std::max<int64_t>((*input)[0], 1) : 1;
  totals.gflops = static_cast<double>(totals.macs) * 2e-9 / static_cast<double>(batch);
  return totals;
}

std::string text_report(const InspectedFile& file, const import::Model& model) {
  const import::SourceInfo& source = model.source;
  const import::DetectorInfo& detector = model.detector;
  const Graph& graph = model.graph;
  const Totals totals = totals_of(model);
  std::string text = printable(file.path) + "\n";
  const auto line = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<9} {}\n", key, value);
  };
  constexpr std::string_view kIndent = "            ";
  line("format", printable(source.format));
  line("release", printable(source.release));
  line("producer", printable(source.producer));
  line("date", printable(source.date));
  line("size", fmt::format("{} bytes", file.bytes));
  line("sha256", file.sha256);
  std::string size_rule;
  if (model.any_size && !detector.strides.empty()) {
    size_rule = fmt::format(", other sizes in steps of {:g}", std::ranges::max(detector.strides));
  }
  line("input", fmt::format("{}{}", fmt::join(value_texts(graph, graph.inputs), ", "), size_rule));
  line("output", fmt::format("{}", fmt::join(value_texts(graph, graph.outputs), ", ")));
  if (detector.head == import::Head::kNone) {
    line("head", "no YOLOv5 detection head was recognised");
  } else {
    line("strides", fmt::format("{}", fmt::join(detector.strides, " ")));
    for (size_t i = 0; i < detector.anchors.size(); ++i)
      line(i == 0 ? "anchors" : "", anchors_text(detector.anchors[i]));
    line("classes", fmt::format("{}: {}", detector.nc, wrapped(detector.names, kIndent)));
  }
  for (const std::string& warning : source.warnings) line("warning", printable(warning));
  text += "\n" + node_table(graph);
  text += fmt::format("\n  {} nodes, {} parameters", totals.nodes,
                      source.params_stored > 0 ? source.params_stored : totals.params);
  if (source.params_fused > 0 && source.params_fused != source.params_stored) {
    text += fmt::format(" ({} with batch norms folded)", source.params_fused);
  }
  const graph::Shape* input =
      graph.inputs.empty() ? nullptr : &graph.value(graph.inputs[0]).type.shape;
  text += fmt::format(", {:.1f} GFLOPs", totals.gflops);
  if (input && input->size() == 4) text += fmt::format(" at {}x{}", (*input)[3], (*input)[2]);
  return text + "\n";
}

std::string json_report(const InspectedFile& file, const import::Model& model) {
  const import::SourceInfo& source = model.source;
  const import::DetectorInfo& detector = model.detector;
  const Graph& graph = model.graph;
  const Totals totals = totals_of(model);
  json report = file_json(file);
  report["format"] = source.format;
  report["release"] = source.release;
  report["producer"] = source.producer;
  report["date"] = source.date;
  report["warnings"] = source.warnings;
  report["inputs"] = values_json(graph, graph.inputs);
  report["outputs"] = values_json(graph, graph.outputs);
  report["any_size"] = model.any_size;
  report["head"] = detector.head == import::Head::kNone ? json() : json("yolov5");
  report["classes"] = detector.nc;
  report["names"] = detector.names;
  report["strides"] = detector.strides;
  report["anchors"] = detector.anchors;
  json& nodes = report["nodes"] = json::array();
  for (const Node& node : graph.nodes) {
    nodes.push_back({{"name", node.name},
                     {"op", node.op->name},
                     {"outputs", values_json(graph, node.outputs)},
                     {"params", params_of(graph, node)},
                     {"macs", graph::macs(graph, node)}});
  }
  report["totals"] = {{"nodes", totals.nodes},
                      {"params", totals.params},
                      {"params_stored", source.params_stored},
                      {"params_fused", source.params_fused},
                      {"macs", totals.macs},
                      {"gflops", totals.gflops}};
  return dumped(report);
}

std::string json_refusal(const InspectedFile& file, std::string_view why) {
  json report = file_json(file);
  report["error"] = why;
  return dumped(report);
}

}  // namespace ferry::cli
