// A graph in the C form that backends read (ferry/backend.h). Owns its copy of the graph; constants
// are shared.
#pragma once

#include <deque>
#include <vector>

#include "ferry/backend.h"
#include "graph/graph.h"

namespace ferry::runtime {

class CGraph {
 public:
  // REQUIRES: verify(graph).ok()
  explicit CGraph(graph::Graph graph);
  CGraph(const CGraph&) = delete;
  CGraph& operator=(const CGraph&) = delete;

  const ferry_graph& c() const { return c_; }
  const graph::Graph& graph() const { return graph_; }
  // Lets go of a constant's bytes; its ferry_value::data must not be read any more.
  void release_constant(int32_t value) { graph_.value(value).constant.reset(); }

  // The object that a ferry_graph belongs to. REQUIRES: `c` came from c() of a living CGraph.
  static CGraph& of(const ferry_graph* c);

 private:
  struct Handle : ferry_graph {
    CGraph* owner;
  };

  graph::Graph graph_;
  std::vector<ferry_value> values_;
  std::vector<const ferry_value*> value_pointers_;
  std::vector<ferry_node> nodes_;
  std::vector<const ferry_node*> node_pointers_;
  std::deque<ferry_attr> attrs_;  // addresses stay
  std::deque<std::vector<const ferry_attr*>> attr_pointers_;
  Handle c_{};
};

}  // namespace ferry::runtime
