#include "graph/op_def.h"

#include <limits>

namespace ferry::graph {
namespace {

template <class T>
T attr_or(const Attrs& attrs, std::string_view name, T fallback) {
  const auto found = attrs.find(name);
  if (found == attrs.end()) return fallback;
  const T* value = std::get_if<T>(&found->second);
  return value ? *value : fallback;
}

}  // namespace

int64_t ForeignNode::int_or(std::string_view name, int64_t fallback) const {
  return attr_or(attrs, name, fallback);
}
double ForeignNode::float_or(std::string_view name, double fallback) const {
  return attr_or(attrs, name, fallback);
}
std::string ForeignNode::string_or(std::string_view name, std::string_view fallback) const {
  return attr_or(attrs, name, std::string(fallback));
}
Ints ForeignNode::ints_or(std::string_view name, Ints fallback) const {
  return attr_or(attrs, name, std::move(fallback));
}

Result<std::optional<Ints>> ForeignNode::const_ints(size_t i) const {
  if (i >= inputs.size() || inputs[i] == nullptr) return std::optional<Ints>();
  if (constants[i] == nullptr) {
    return error(Code::kUnsupported,
                 "input {} must be constant; it is computed while the model runs", i);
  }
  FERRY_TRY(values, constants[i]->to_ints());
  return std::optional<Ints>(std::move(values));
}

int64_t macs(const Graph& graph, const Node& node) {
  if (node.op->macs == nullptr) return 0;
  std::vector<const TensorType*> types;
  std::vector<const Tensor*> constants;
  for (const ValueId id : node.inputs) {
    types.push_back(id == kNone ? nullptr : &graph.value(id).type);
    constants.push_back(id != kNone && graph.value(id).constant ? &*graph.value(id).constant
                                                                : nullptr);
  }
  return node.op->macs({node, types, constants});
}

int64_t macs(const Graph& graph) {
  int64_t sum = 0;
  for (const Node& node : graph.nodes) {
    if (__builtin_add_overflow(sum, macs(graph, node), &sum)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return sum;
}

}  // namespace ferry::graph
