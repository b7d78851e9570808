// The reference device: runs a graph node by node with the ops' own plain loops. Slow, and right by
// definition. Values are rounded to what their storage holds.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace ferry::ops {

// One tensor per graph output. REQUIRES: verify(graph).ok(). Fails when the inputs' types are not
// the graph's, or memory runs out. Values are dropped after their last use.
Result<std::vector<graph::Tensor>> evaluate(const graph::Graph& graph,
                                            std::span<const graph::Tensor> inputs);

// The same, and every value that `keep` names is returned too, behind the outputs.
Result<std::vector<graph::Tensor>> evaluate(const graph::Graph& graph,
                                            std::span<const graph::Tensor> inputs,
                                            std::span<const graph::ValueId> keep);

// One node on given tensors (null: absent input): infers the output types, allocates, evaluates.
// Used by constant folding.
Result<std::vector<graph::Tensor>> evaluate_node(const graph::Node& node,
                                                 std::span<const graph::Tensor* const> inputs);

}  // namespace ferry::ops
