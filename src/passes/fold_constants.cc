// fold_constants: f(constants) = constant.
//
// Exporters spell shapes, grids and weights as arithmetic; all of it is done once here, with the
// ops' own reference loops. A result is kept as a constant only where that does not cost memory:
// `expand` of one number to a grid of a million stays a node. Work is bounded as well, so that a
// hostile file cannot keep us busy.
#include "ops/evaluate.h"
#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

constexpr int64_t kMaxGrowth = int64_t{1}
                               << 20;  // bytes that one result may have beyond its inputs
constexpr int64_t kMaxAllGrowth = int64_t{1} << 26;  // and all of them together
constexpr int64_t kMaxMacs = int64_t{1} << 30;

int64_t bytes_of(const TensorType& type) { return elements(type.shape) * dtype_size(type.dtype); }

bool all_constant(const Graph& graph, const Node& node) {
  for (const ValueId id : node.inputs) {
    if (id != kNone && !graph.value(id).constant) return false;
  }
  return true;
}

// Bytes that the graph gains by folding the node; nothing when it is too much.
std::optional<int64_t> affordable_growth(const Graph& graph, const Node& node, int64_t budget) {
  std::vector<const TensorType*> types;
  std::vector<const Tensor*> constants;
  int64_t growth = 0;
  for (const ValueId id : node.inputs) {
    types.push_back(id == kNone ? nullptr : &graph.value(id).type);
    constants.push_back(id == kNone ? nullptr : &*graph.value(id).constant);
    if (id != kNone) growth -= bytes_of(graph.value(id).type);
  }
  for (const ValueId id : node.outputs) growth += bytes_of(graph.value(id).type);
  if (growth > kMaxGrowth || growth > budget) return std::nullopt;
  if (node.op->macs != nullptr && node.op->macs({node, types, constants}) > kMaxMacs) {
    return std::nullopt;
  }
  if (node.attrs.contains("kernel")) return std::nullopt;  // pools: long work for a few bytes
  return std::max<int64_t>(growth, 0);
}

}  // namespace

Result<int> fold_constants(Graph& graph) {
  int rewrites = 0;
  int64_t budget = kMaxAllGrowth;
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    if (node.op->eval == nullptr || !all_constant(graph, node)) {
      kept.push_back(std::move(node));
      continue;
    }
    const auto growth = affordable_growth(graph, node, budget);
    if (!growth) {
      kept.push_back(std::move(node));
      continue;
    }
    std::vector<const Tensor*> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(id == kNone ? nullptr : &*graph.value(id).constant);
    FERRY_TRY(outputs, ops::evaluate_node(node, inputs));
    for (size_t i = 0; i < outputs.size(); ++i)
      graph.value(node.outputs[i]).constant = std::move(outputs[i]);
    budget -= *growth;
    ++rewrites;
  }
  graph.nodes = std::move(kept);
  prune(graph);
  return rewrites;
}

}  // namespace ferry::passes
