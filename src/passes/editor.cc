#include "passes/editor.h"

#include <algorithm>
#include <numeric>

#include "graph/op_def.h"
#include "ops/table.h"

namespace ferry::passes {

using namespace graph;

namespace {

size_t at(int i) { return static_cast<size_t>(i); }

}  // namespace

Editor::Editor(Graph& graph)
    : graph_(graph),
      alive_(graph.nodes.size(), true),
      producer_(producers(graph)),
      users_(graph::users(graph)),
      outputs_(graph.values.size(), 0) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) place_.emplace_back(static_cast<int>(n), 1);
  for (const ValueId id : graph.outputs) ++outputs_[at(id)];
}

bool Editor::is(int n, std::string_view op) const {
  return n >= 0 && alive_[at(n)] && graph_.nodes[at(n)].op->name == op;
}

int Editor::producer(ValueId id) const { return id == kNone ? -1 : producer_[at(id)]; }

int Editor::producer_if(ValueId id, std::string_view op) const {
  const int n = producer(id);
  return is(n, op) ? n : -1;
}

int Editor::only_user(ValueId id) const {
  return users(id).size() == 1 && !is_output(id) ? users(id)[0] : -1;
}

int Editor::fusable(ValueId id, std::string_view op) const {
  const int n = producer_if(id, op);
  return n >= 0 && only_user(id) >= 0 ? n : -1;
}

Result<std::vector<ValueId>> Editor::insert(int before, std::string_view op, std::string_view name,
                                            std::vector<ValueId> inputs, Attrs attrs, int outputs) {
  FERRY_TRY(ids, add_node(graph_, ops::op(op), name, std::move(inputs), std::move(attrs), outputs));
  const int n = size() - 1;
  alive_.push_back(true);
  place_.emplace_back(place_[at(before)].first, 0);
  producer_.resize(graph_.values.size(), -1);
  users_.resize(graph_.values.size());
  outputs_.resize(graph_.values.size(), 0);
  for (const ValueId id : ids) producer_[at(id)] = n;
  add_uses(n);
  return ids;
}

Result<ValueId> Editor::insert_op(int before, std::string_view op, std::string_view name,
                                  std::vector<ValueId> inputs, Attrs attrs) {
  FERRY_TRY(ids, insert(before, op, name, std::move(inputs), std::move(attrs)));
  return ids[0];
}

ValueId Editor::constant(std::string_view name, Tensor tensor) {
  const ValueId id = add_constant(graph_, name, std::move(tensor));
  producer_.resize(graph_.values.size(), -1);
  users_.resize(graph_.values.size());
  outputs_.resize(graph_.values.size(), 0);
  return id;
}

void Editor::set_inputs(int n, std::vector<ValueId> inputs) {
  const std::vector<ValueId> old = graph_.nodes[at(n)].inputs;
  drop_uses(n);
  graph_.nodes[at(n)].inputs = std::move(inputs);
  add_uses(n);
  drop_unused(old);
}

void Editor::take_output(int n, size_t i, ValueId id) {
  ValueId& slot = graph_.nodes[at(n)].outputs[i];
  const int former = producer_[at(id)];
  producer_[at(slot)] = -1;
  slot = id;
  producer_[at(id)] = n;
  if (former < 0) return;
  Node& loser = graph_.nodes[at(former)];
  const bool only = loser.outputs.size() == 1;
  FERRY_ASSERT(only, "take_output replaces nodes with one output");
  alive_[at(former)] = false;
  const std::vector<ValueId> inputs = loser.inputs;
  drop_uses(former);
  drop_unused(inputs);
}

bool Editor::replace(ValueId from, ValueId to) {
  if (from == to) return true;
  if (is_output(from)) {
    const bool input =
        std::find(graph_.inputs.begin(), graph_.inputs.end(), to) != graph_.inputs.end();
    if (input || is_output(to)) return false;
    std::swap(graph_.value(from).name, graph_.value(to).name);
    std::replace(graph_.outputs.begin(), graph_.outputs.end(), from, to);
    std::swap(outputs_[at(from)], outputs_[at(to)]);
  }
  std::vector<int> moved;
  std::swap(moved, users_[at(from)]);
  for (const int n : moved) {
    std::vector<ValueId>& inputs = graph_.nodes[at(n)].inputs;
    std::replace(inputs.begin(), inputs.end(), from, to);
    users_[at(to)].push_back(n);
  }
  drop_if_unused(producer(from));
  return true;
}

void Editor::move(int n, int place) { place_[at(n)] = place_[at(place)]; }

Status Editor::finish() {
  std::vector<int> order(graph_.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return place_[at(a)] < place_[at(b)]; });
  std::vector<Node> nodes;
  for (const int n : order) {
    if (alive_[at(n)]) nodes.push_back(std::move(graph_.nodes[at(n)]));
  }
  graph_.nodes = std::move(nodes);
  FERRY_CHECK_OK(sort_topologically(graph_));
  prune(graph_);
  return {};
}

void Editor::add_uses(int n) {
  for (const ValueId id : graph_.nodes[at(n)].inputs) {
    if (id != kNone) users_[at(id)].push_back(n);
  }
}

void Editor::drop_uses(int n) {
  for (const ValueId id : graph_.nodes[at(n)].inputs) {
    if (id == kNone) continue;
    std::vector<int>& list = users_[at(id)];
    if (const auto found = std::find(list.begin(), list.end(), n); found != list.end())
      list.erase(found);
  }
}

void Editor::drop_unused(const std::vector<ValueId>& inputs) {
  for (const ValueId id : inputs) {
    drop_if_unused(producer(id));
    if (id != kNone && users(id).empty() && !is_output(id)) graph_.value(id).constant.reset();
  }
}

// A worklist, not recursion: chains in hostile files are long.
void Editor::drop_if_unused(int first) {
  std::vector<int> work = {first};
  while (!work.empty()) {
    const int n = work.back();
    work.pop_back();
    if (n < 0 || !alive_[at(n)]) continue;
    const std::vector<ValueId>& outputs = graph_.nodes[at(n)].outputs;
    const bool used = std::any_of(outputs.begin(), outputs.end(),
                                  [&](ValueId id) { return is_output(id) || !users(id).empty(); });
    if (used) continue;
    alive_[at(n)] = false;
    drop_uses(n);
    for (const ValueId id : outputs) producer_[at(id)] = -1;
    for (const ValueId id : graph_.nodes[at(n)].inputs) work.push_back(producer(id));
  }
}

}  // namespace ferry::passes
