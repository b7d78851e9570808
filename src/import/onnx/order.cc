#include "import/onnx/order.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ferry::import::onnx {
namespace {

constexpr int kSource = -1;   // an input or an initializer
constexpr int kMaxDepth = 8;  // of branches within branches

using Producers = std::unordered_map<std::string_view, int>;  // name -> node, or kSource

std::string producer_text(const GraphProto& graph, int producer) {
  if (producer == kSource) return "an input or initializer";
  return node_text(graph.nodes[static_cast<size_t>(producer)]);
}

Result<Producers> find_producers(const GraphProto& graph) {
  Producers producers;
  for (const ValueInfo& input : graph.inputs) {
    if (!producers.emplace(input.name, kSource).second) {
      return error(Code::kInvalid, "two inputs are named '{}'", input.name);
    }
  }
  // Up to IR version 3 every initializer is listed as an input too, so those names may meet.
  std::unordered_set<std::string_view> initializers;
  for (const Initializer& initializer : graph.initializers) {
    if (!initializers.insert(initializer.name).second) {
      return error(Code::kInvalid, "two initializers are named '{}'", initializer.name);
    }
    producers.emplace(initializer.name, kSource);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::string_view output : graph.nodes[n].outputs) {
      if (output.empty()) continue;
      const auto [found, is_new] = producers.emplace(output, static_cast<int>(n));
      if (!is_new) {
        return error(Code::kInvalid, "'{}' is produced twice: by {} and by {}", output,
                     producer_text(graph, found->second), node_text(graph.nodes[n]));
      }
    }
  }
  return producers;
}

// Names that a branch reads from around it.
Status add_captures(const GraphProto& graph, int depth, std::vector<std::string_view>& names);

// Everything a node reads: its inputs and what the branches of an If capture.
Result<std::vector<std::string_view>> reads(const Node& node, int depth) {
  std::vector<std::string_view> names;
  for (const std::string_view input : node.inputs) {
    if (!input.empty()) names.push_back(input);
  }
  if (node.op_type != "If") return names;
  if (depth == 0) return error(Code::kUnsupported, "branches are nested too deep");
  for (const ByteSpan message : node.attributes) {
    FERRY_TRY(attribute, read_attribute(message).within(node_text(node)));
    if (attribute.type != static_cast<int64_t>(AttributeType::kGraph)) continue;
    FERRY_TRY(branch, read_graph(attribute.message).within(node_text(node)));
    FERRY_CHECK_OK(add_captures(branch, depth - 1, names));
  }
  return names;
}

Status add_captures(const GraphProto& graph, int depth, std::vector<std::string_view>& names) {
  std::unordered_set<std::string_view> own;
  for (const ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const Initializer& initializer : graph.initializers) own.insert(initializer.name);
  for (const Node& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  const auto add = [&](std::string_view name) {
    if (!own.contains(name)) names.push_back(name);
  };
  for (const Node& node : graph.nodes) {
    FERRY_TRY(inner, reads(node, depth));
    std::for_each(inner.begin(), inner.end(), add);
  }
  for (const ValueInfo& output : graph.outputs) add(output.name);
  return {};
}

// Some nodes on a cycle, given that every node of `stuck` reads from another one of them.
std::string cycle_text(const GraphProto& graph, const std::vector<std::vector<int>>& needs,
                       const std::vector<int>& waiting) {
  const auto stuck = [&](int n) { return waiting[static_cast<size_t>(n)] > 0; };
  int at = 0;
  while (!stuck(at)) ++at;
  std::vector<int> path;
  std::vector<bool> seen(graph.nodes.size(), false);
  while (!seen[static_cast<size_t>(at)]) {
    seen[static_cast<size_t>(at)] = true;
    path.push_back(at);
    const auto& from = needs[static_cast<size_t>(at)];
    at = *std::find_if(from.begin(), from.end(), stuck);
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::string text;
  for (size_t i = 0; i < path.size() && i < 4; ++i) {
    text += i ? " reads from " : "";
    text += node_text(graph.nodes[static_cast<size_t>(path[i])]);
  }
  if (path.size() > 4) text += fmt::format(" and {} more", path.size() - 4);
  return text + ", which needs its own result";
}

}  // namespace

std::string node_text(const Node& node) {
  const std::string_view name = !node.name.empty()      ? node.name
                                : !node.outputs.empty() ? node.outputs[0]
                                                        : std::string_view("without a name");
  return fmt::format("node '{}' ({})", name.substr(0, 200), node.op_type.substr(0, 80));
}

Result<std::vector<const Node*>> nodes_in_order(
    const GraphProto& graph, const std::function<bool(std::string_view)>& outer) {
  FERRY_TRY(producers, find_producers(graph));
  const size_t count = graph.nodes.size();

  std::vector<std::vector<int>> needs(count), feeds(count);
  std::vector<int> waiting(count, 0);
  for (size_t n = 0; n < count; ++n) {
    FERRY_TRY(names, reads(graph.nodes[n], kMaxDepth));
    for (const std::string_view name : names) {
      const auto found = producers.find(name);
      if (found == producers.end()) {
        if (outer && outer(name)) continue;
        return error(Code::kInvalid,
                     "{} reads '{}', which no node, input or initializer produces: the file is "
                     "incomplete, export it again",
                     node_text(graph.nodes[n]), name);
      }
      if (found->second == kSource) continue;
      needs[n].push_back(found->second);
      feeds[static_cast<size_t>(found->second)].push_back(static_cast<int>(n));
      ++waiting[n];
    }
  }

  // Kahn's algorithm on a heap: of the nodes that are ready the first in the file goes first.
  const auto later = [](int a, int b) { return a > b; };
  std::vector<int> ready, order;
  for (size_t n = 0; n < count; ++n) {
    if (waiting[n] == 0) ready.push_back(static_cast<int>(n));
  }
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const int n = ready.back();
    ready.pop_back();
    order.push_back(n);
    for (const int user : feeds[static_cast<size_t>(n)]) {
      if (--waiting[static_cast<size_t>(user)] != 0) continue;
      ready.push_back(user);
      std::push_heap(ready.begin(), ready.end(), later);
    }
  }
  if (order.size() != count) {
    return error(Code::kInvalid, "the graph has a cycle: {}", cycle_text(graph, needs, waiting));
  }

  std::vector<bool> live(count, false);
  for (const ValueInfo& output : graph.outputs) {
    const auto found = producers.find(output.name);
    if (found == producers.end()) {
      if (outer && outer(output.name)) continue;
      return error(Code::kInvalid, "the graph's output '{}' is produced by nothing", output.name);
    }
    if (found->second != kSource) live[static_cast<size_t>(found->second)] = true;
  }
  std::vector<const Node*> sorted;
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    if (!live[static_cast<size_t>(*n)]) continue;
    for (const int from : needs[static_cast<size_t>(*n)]) live[static_cast<size_t>(from)] = true;
    sorted.push_back(&graph.nodes[static_cast<size_t>(*n)]);
  }
  std::reverse(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace ferry::import::onnx
