#include "passes/raw_heads.h"

#include "graph/op_def.h"

namespace ferry::passes {

using namespace graph;

Result<HeadSpec> expose_raw_heads(Graph& graph) {
  const int n = producers(graph)[static_cast<size_t>(graph.outputs[0])];
  const std::string& name = graph.value(graph.outputs[0]).name;
  if (n < 0 || graph.nodes[static_cast<size_t>(n)].op->name != "yolo_detect") {
    return error(Code::kUnsupported,
                 "output '{}' does not come from a YOLOv5 Detect layer but from {}", name,
                 n < 0 ? "an input" : graph.nodes[static_cast<size_t>(n)].op->name);
  }
  const Node& detect = graph.nodes[static_cast<size_t>(n)];
  HeadSpec spec{.classes = attr<int64_t>(detect, "classes"),
                .strides = attr<Floats>(detect, "strides")};
  const Floats& numbers = attr<Floats>(detect, "anchors");
  const size_t levels = detect.inputs.size(), anchors = numbers.size() / 2 / levels;
  for (size_t level = 0; level < levels; ++level) {
    spec.anchors.emplace_back();
    for (size_t a = 0; a < anchors; ++a) {
      const size_t i = 2 * (level * anchors + a);
      spec.anchors.back().push_back({numbers[i], numbers[i + 1]});
    }
  }
  graph.outputs = std::vector<ValueId>(detect.inputs);
  prune(graph);
  return spec;
}

}  // namespace ferry::passes
