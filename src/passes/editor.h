// A graph while a pass rewrites it: who produces and who uses each value, kept true through every
// change, and nodes whose numbers stay put until finish(). Passes edit through this, so that
// matching and rewriting cost O(1) a step.
//
// What every pass owes, and what this keeps for it:
//   - names of the graph's outputs survive: a fused node takes the *last* value of what it
//   replaces, replace() renames;
//   - no node is lost that somebody still uses, and none is left that nobody does;
//   - a new node stands where the rewrite happened, not at the end, so lifetimes of activations
//   stay short.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace ferry::passes {

using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::ValueId;

class Editor {
 public:
  explicit Editor(Graph& graph);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  // Nodes are 0 … size() - 1, in topological order at first; insert() appends. References to nodes
  // and values end with the next insert().
  int size() const { return static_cast<int>(graph_.nodes.size()); }
  bool alive(int n) const { return alive_[static_cast<size_t>(n)]; }
  const Node& node(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  Attrs& attrs(int n) { return graph_.nodes[static_cast<size_t>(n)].attrs; }

  // --- matching ---

  // Is node `n` alive, and its op called this?
  bool is(int n, std::string_view op) const;
  int producer(ValueId id) const;  // -1: a graph input, a constant, or kNone
  // The producer when its op is called this, else -1.
  int producer_if(ValueId id, std::string_view op) const;
  const std::vector<int>& users(ValueId id) const { return users_[static_cast<size_t>(id)]; }
  bool is_output(ValueId id) const { return outputs_[static_cast<size_t>(id)] > 0; }
  // The one node that uses `id`, once; -1 when there are other uses or the graph returns it.
  int only_user(ValueId id) const;
  // The node whose output `id` is used by nobody but one node, when its op is called this; else -1.
  int fusable(ValueId id, std::string_view op) const;

  // --- rewriting ---

  // A new node in front of node `before`. Like graph::add_node.
  Result<std::vector<ValueId>> insert(int before, std::string_view op, std::string_view name,
                                      std::vector<ValueId> inputs, Attrs attrs = {},
                                      int outputs = 1);
  Result<ValueId> insert_op(int before, std::string_view op, std::string_view name,
                            std::vector<ValueId> inputs, Attrs attrs = {});
  ValueId constant(std::string_view name, graph::Tensor tensor);

  // Nodes that are used by nobody afterwards go, and so does the data of constants: a pass over all
  // weights holds them twice for one node at a time only.
  void set_inputs(int n, std::vector<ValueId> inputs);
  // Output `i` of node `n` becomes `id`, whose former producer loses it and goes when it has no
  // other. The old output must have no use left but in that producer.
  void take_output(int n, size_t i, ValueId id);
  // Every use of `from` becomes one of `to`; the producer of `from` goes when it has no other use.
  // False, and nothing changes, when the graph returns `from` and `to` cannot have its name.
  [[nodiscard]] bool replace(ValueId from, ValueId to);
  // Node `n` will stand where node `place` stands.
  void move(int n, int place);

  // Puts nodes in order and drops what is unused; node numbers end here. Call last, once.
  Status finish();

 private:
  void add_uses(int n);
  void drop_uses(int n);
  void drop_if_unused(int n);
  void drop_unused(const std::vector<ValueId>& inputs);

  Graph& graph_;
  std::vector<bool> alive_;                 // per node
  std::vector<std::pair<int, int>> place_;  // per node: (original index, 0 when in front of it)
  std::vector<int> producer_;               // per value
  std::vector<std::vector<int>> users_;     // per value, one entry a use
  std::vector<int> outputs_;                // per value: how often the graph returns it
};

}  // namespace ferry::passes
