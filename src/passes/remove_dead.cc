// remove_dead: nodes and constants that no output needs.
#include "passes/passes.h"

namespace ferry::passes {

Result<int> remove_dead(graph::Graph& graph) {
  const size_t before = graph.nodes.size();
  prune(graph);
  return static_cast<int>(before - graph.nodes.size());
}

}  // namespace ferry::passes
