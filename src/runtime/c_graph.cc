#include "runtime/c_graph.h"

#include <variant>

#include "graph/op_def.h"

namespace ferry::runtime {
namespace {

ferry_attr to_c(const std::string& name, const graph::Attr& attr) {
  ferry_attr out{};
  out.size = sizeof out;
  out.name = name.c_str();
  if (const auto* i = std::get_if<int64_t>(&attr)) {
    out.kind = FERRY_ATTR_INT;
    out.i = *i;
  } else if (const auto* f = std::get_if<double>(&attr)) {
    out.kind = FERRY_ATTR_FLOAT;
    out.f = *f;
  } else if (const auto* s = std::get_if<std::string>(&attr)) {
    out.kind = FERRY_ATTR_STRING;
    out.s = s->c_str();
  } else if (const auto* ints = std::get_if<graph::Ints>(&attr)) {
    out.kind = FERRY_ATTR_INTS;
    out.ints = ints->data();
    out.count = static_cast<int64_t>(ints->size());
  } else if (const auto* floats = std::get_if<graph::Floats>(&attr)) {
    out.kind = FERRY_ATTR_FLOATS;
    out.floats = floats->data();
    out.count = static_cast<int64_t>(floats->size());
  }
  return out;
}

int32_t count(const auto& list) { return static_cast<int32_t>(list.size()); }

}  // namespace

CGraph::CGraph(graph::Graph graph) : graph_(std::move(graph)) {
  for (const graph::Value& value : graph_.values) {
    values_.push_back({.size = sizeof(ferry_value),
                       .name = value.name.c_str(),
                       .dtype = static_cast<int32_t>(value.type.dtype),
                       .rank = count(value.type.shape),
                       .dims = value.type.shape.data(),
                       .data = value.constant ? value.constant->data() : nullptr,
                       .identity = value.constant ? value.constant->identity() : 0,
                       .storage = static_cast<int32_t>(value.type.dtype == graph::DType::kF32
                                                           ? value.storage.dtype
                                                           : value.type.dtype),
                       .scales = value.storage.scales.data(),
                       .scale_count = count(value.storage.scales),
                       .zero_point = value.storage.zero_point});
  }
  for (const ferry_value& value : values_) value_pointers_.push_back(&value);
  for (const graph::Node& node : graph_.nodes) {
    std::vector<const ferry_attr*>& pointers = attr_pointers_.emplace_back();
    for (const auto& [name, attr] : node.attrs)
      pointers.push_back(&attrs_.emplace_back(to_c(name, attr)));
    nodes_.push_back({.size = sizeof(ferry_node),
                      .op = node.op->name.data(),
                      .name = node.name.c_str(),
                      .inputs = node.inputs.data(),
                      .input_count = count(node.inputs),
                      .outputs = node.outputs.data(),
                      .output_count = count(node.outputs),
                      .attrs = pointers.data(),
                      .attr_count = count(pointers),
                      .macs = graph::macs(graph_, node)});
  }
  for (const ferry_node& node : nodes_) node_pointers_.push_back(&node);
  c_.size = sizeof(ferry_graph);
  c_.values = value_pointers_.data();
  c_.value_count = count(value_pointers_);
  c_.nodes = node_pointers_.data();
  c_.node_count = count(node_pointers_);
  c_.inputs = graph_.inputs.data();
  c_.input_count = count(graph_.inputs);
  c_.outputs = graph_.outputs.data();
  c_.output_count = count(graph_.outputs);
  c_.owner = this;
}

CGraph& CGraph::of(const ferry_graph* c) { return *static_cast<const Handle*>(c)->owner; }

}  // namespace ferry::runtime
