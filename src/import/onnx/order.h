// The structure of an ONNX graph: who produces which name, and an order in which every name is
// produced before it is read. Exporters' optimisers leave nodes unsorted, so the file's order is
// not trusted.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/onnx/proto.h"

namespace ferry::import::onnx {

// "node 'model.0.conv' (Conv)"; a node without a name is called by its first output.
std::string node_text(const Node& node);

// The nodes that the outputs need, producers first, otherwise in the file's order. The whole graph
// is checked, dead nodes too: fails on two producers of a name, on a name that nothing produces and
// on a cycle, with the nodes' names. `outer` tells whether a name exists around the graph (for the
// branches of an If); null: nothing does.
Result<std::vector<const Node*>> nodes_in_order(
    const GraphProto& graph, const std::function<bool(std::string_view)>& outer = nullptr);

}  // namespace ferry::import::onnx
