#include "graph/graph.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "graph/op_def.h"

namespace ferry::graph {
namespace {

std::string node_text(const Node& node) { return fmt::format("{} '{}'", node.op->name, node.name); }

bool valid_id(const Graph& graph, ValueId id) {
  return id >= 0 && static_cast<size_t>(id) < graph.values.size();
}

// Attributes: all known, all of the declared type, required ones present; with `fill`, defaults are
// put in.
Status check_attrs(const OpDef& op, Attrs& attrs, bool fill) {
  for (auto& [name, value] : attrs) {
    const auto def = std::find_if(op.attrs.begin(), op.attrs.end(),
                                  [&wanted = name](const AttrDef& d) { return d.name == wanted; });
    if (def == op.attrs.end()) return error(Code::kInvalid, "has no attribute '{}'", name);
    if (def->fallback.index() == value.index()) continue;
    // A list or number written without a point is read as integers; the op says that it wants
    // floats.
    if (const auto* i = std::get_if<int64_t>(&value);
        i && std::holds_alternative<double>(def->fallback)) {
      value = static_cast<double>(*i);
    } else if (const auto* list = std::get_if<Ints>(&value);
               list && std::holds_alternative<Floats>(def->fallback)) {
      value = Floats(list->begin(), list->end());
    } else if (const auto* floats = std::get_if<Floats>(&value);
               floats && floats->empty() && std::holds_alternative<Ints>(def->fallback)) {
      value = Ints{};
    } else {
      return error(Code::kInvalid, "attribute '{}' has the wrong type", name);
    }
  }
  for (const AttrDef& def : op.attrs) {
    if (attrs.contains(def.name)) continue;
    if (def.required || !fill) return error(Code::kInvalid, "needs attribute '{}'", def.name);
    attrs.emplace(std::string(def.name), def.fallback);
  }
  return {};
}

Status check_arity(const Node& node) {
  const auto count = static_cast<int>(node.inputs.size());
  if (count < node.op->min_inputs || (node.op->max_inputs >= 0 && count > node.op->max_inputs)) {
    return error(Code::kInvalid, "has {} inputs, needs {}", count,
                 node.op->max_inputs == node.op->min_inputs ? fmt::format("{}", node.op->min_inputs)
                 : node.op->max_inputs < 0
                     ? fmt::format("at least {}", node.op->min_inputs)
                     : fmt::format("{} to {}", node.op->min_inputs, node.op->max_inputs));
  }
  for (int i = 0; i < std::min(count, std::max(node.op->min_inputs, 0)); ++i) {
    if (node.inputs[static_cast<size_t>(i)] == kNone)
      return error(Code::kInvalid, "input {} is absent", i);
  }
  return {};
}

Result<std::vector<TensorType>> infer_node(const Graph& graph, const Node& node) {
  std::vector<const TensorType*> types;
  std::vector<const Tensor*> constants;
  for (const ValueId id : node.inputs) {
    types.push_back(id == kNone ? nullptr : &graph.value(id).type);
    constants.push_back(id != kNone && graph.value(id).constant ? &*graph.value(id).constant
                                                                : nullptr);
  }
  FERRY_TRY(out, node.op->infer({node, types, constants}));
  for (const TensorType& type : out) FERRY_CHECK_OK(check_shape(type.shape, type.dtype));
  return out;
}

std::unordered_set<std::string_view> names(const Graph& graph) {
  std::unordered_set<std::string_view> out;
  for (const Value& value : graph.values) out.insert(value.name);
  return out;
}

}  // namespace

std::string unique_name(const Graph& graph, std::string_view wish) {
  if (wish.empty()) wish = "value";
  if (find_value(graph, wish) == kNone) return std::string(wish);
  const auto taken = names(graph);
  for (int i = 1;; ++i) {
    std::string name = fmt::format("{}.{}", wish, i);
    if (!taken.contains(name)) return name;
  }
}

ValueId add_value(Graph& graph, std::string_view name, TensorType type) {
  graph.values.push_back({unique_name(graph, name), std::move(type)});
  return static_cast<ValueId>(graph.values.size() - 1);
}

ValueId add_input(Graph& graph, std::string_view name, TensorType type) {
  const ValueId id = add_value(graph, name, std::move(type));
  graph.inputs.push_back(id);
  return id;
}

ValueId add_constant(Graph& graph, std::string_view name, Tensor tensor) {
  const ValueId id = add_value(graph, name, tensor.type());
  graph.value(id).constant = std::move(tensor);
  return id;
}

Result<std::vector<ValueId>> add_node(Graph& graph, const OpDef& op, std::string_view name,
                                      std::vector<ValueId> inputs, Attrs attrs, int outputs) {
  while (!inputs.empty() && inputs.back() == kNone &&
         static_cast<int>(inputs.size()) > op.min_inputs)
    inputs.pop_back();
  Node node{&op, std::string(name), std::move(inputs), {}, std::move(attrs)};
  const std::string where = node_text(node);
  for (const ValueId id : node.inputs) {
    FERRY_ASSERT(id == kNone || valid_id(graph, id), "node uses a value that is not in the graph");
  }
  FERRY_CHECK_OK(check_arity(node).within(where));
  FERRY_CHECK_OK(check_attrs(op, node.attrs, true).within(where));
  if (op.outputs < 0) {  // shape rules of ops with many outputs may count them
    for (int i = 0; i < outputs; ++i) node.outputs.push_back(kNone);
  }
  FERRY_TRY(types, infer_node(graph, node).within(where));
  if (static_cast<int>(types.size()) != outputs) {
    return error(Code::kInvalid, "{}: gives {} outputs, {} are named", where, types.size(),
                 outputs);
  }
  node.outputs.clear();
  for (TensorType& type : types) node.outputs.push_back(add_value(graph, name, std::move(type)));
  graph.nodes.push_back(node);
  return node.outputs;
}

Result<ValueId> add_op(Graph& graph, const OpDef& op, std::string_view name,
                       std::vector<ValueId> inputs, Attrs attrs) {
  FERRY_TRY(outputs, add_node(graph, op, name, std::move(inputs), std::move(attrs), 1));
  return outputs[0];
}

std::vector<int> producers(const Graph& graph) {
  std::vector<int> out(graph.values.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : graph.nodes[n].outputs)
      out[static_cast<size_t>(id)] = static_cast<int>(n);
  }
  return out;
}

std::vector<std::vector<int>> users(const Graph& graph) {
  std::vector<std::vector<int>> out(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : graph.nodes[n].inputs) {
      if (id != kNone) out[static_cast<size_t>(id)].push_back(static_cast<int>(n));
    }
  }
  return out;
}

bool is_output(const Graph& graph, ValueId id) {
  return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
}

ValueId find_value(const Graph& graph, std::string_view name) {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].name == name) return static_cast<ValueId>(i);
  }
  return kNone;
}

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
}

void prune(Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  for (const ValueId id : graph.inputs) used[static_cast<size_t>(id)] = true;
  for (const ValueId id : graph.outputs) used[static_cast<size_t>(id)] = true;

  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool needed = std::any_of(node->outputs.begin(), node->outputs.end(),
                                    [&](ValueId id) { return used[static_cast<size_t>(id)]; });
    if (!needed) continue;
    for (const ValueId id : node->outputs) used[static_cast<size_t>(id)] = true;
    for (const ValueId id : node->inputs) {
      if (id != kNone) used[static_cast<size_t>(id)] = true;
    }
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);

  std::vector<ValueId> renumbered(graph.values.size(), kNone);
  std::vector<Value> values;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!used[i]) continue;
    renumbered[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[i]));
  }
  graph.values = std::move(values);
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (id != kNone) id = renumbered[static_cast<size_t>(id)];
    }
  };
  for (Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  renumber(graph.inputs);
  renumber(graph.outputs);
}

Status sort_topologically(Graph& graph) {
  const std::vector<int> producer = producers(graph);
  const std::vector<std::vector<int>> user = users(graph);
  std::vector<int> waiting(graph.nodes.size(), 0);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : graph.nodes[n].inputs) {
      if (id != kNone && producer[static_cast<size_t>(id)] >= 0) ++waiting[n];
    }
  }
  // Kahn's algorithm on a heap of indices: among the nodes that are ready the first in the old
  // order goes first.
  std::vector<int> ready;
  const auto later = [](int a, int b) { return a > b; };
  for (size_t n = 0; n < waiting.size(); ++n) {
    if (waiting[n] == 0) ready.push_back(static_cast<int>(n));
  }
  std::make_heap(ready.begin(), ready.end(), later);
  std::vector<Node> sorted;
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const auto n = static_cast<size_t>(ready.back());
    ready.pop_back();
    for (const ValueId id : graph.nodes[n].outputs) {
      for (const int u : user[static_cast<size_t>(id)]) {
        if (--waiting[static_cast<size_t>(u)] != 0) continue;
        ready.push_back(u);
        std::push_heap(ready.begin(), ready.end(), later);
      }
    }
    sorted.push_back(graph.nodes[n]);
  }
  if (sorted.size() != graph.nodes.size()) {
    const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; });
    return error(Code::kInvalid, "the graph has a cycle through {}",
                 node_text(graph.nodes[static_cast<size_t>(stuck - waiting.begin())]));
  }
  graph.nodes = std::move(sorted);
  return {};
}

Status infer_types(Graph& graph) {
  for (Node& node : graph.nodes) {
    FERRY_TRY(types, infer_node(graph, node).within(node_text(node)));
    if (types.size() != node.outputs.size()) {
      return error(Code::kInvalid, "{}: gives {} outputs, has {}", node_text(node), types.size(),
                   node.outputs.size());
    }
    for (size_t i = 0; i < types.size(); ++i)
      graph.value(node.outputs[i]).type = std::move(types[i]);
  }
  return {};
}

Status set_input_type(Graph& graph, size_t index, TensorType type) {
  FERRY_CHECK_OK(check_shape(type.shape, type.dtype));
  graph.value(graph.inputs[index]).type = std::move(type);
  return infer_types(graph);
}

float round_to(const Storage& storage, size_t slice, float value) {
  switch (storage.dtype) {
    case DType::kBf16:
      return bf16_to_f32(f32_to_bf16(value));
    case DType::kU8: {
      const auto zero = static_cast<float>(storage.zero_point);
      const float q = std::nearbyint(value / storage.scales[0]) + zero;
      return std::isnan(q) ? 0.0f : (std::clamp(q, 0.0f, 255.0f) - zero) * storage.scales[0];
    }
    case DType::kI8: {
      const float q = std::nearbyint(value / storage.scales[slice]);
      return std::isnan(q) ? 0.0f : std::clamp(q, -127.0f, 127.0f) * storage.scales[slice];
    }
    default:
      return value;
  }
}

void round_to(const Storage& storage, Tensor& tensor) {
  const std::span<float> values = tensor.mut<float>();
  const size_t slices = storage.dtype == DType::kI8 ? storage.scales.size() : 1;
  const size_t length = values.size() / std::max<size_t>(slices, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = round_to(storage, slices == 1 ? 0 : i / length, values[i]);
  }
}

Status check_storage(const Storage& storage, const TensorType& type, bool constant) {
  if (storage == Storage{}) return {};
  if (type.dtype != DType::kF32)
    return error(Code::kInvalid, "{} is stored as {}, not as {}", type_text(type),
                 dtype_name(type.dtype), dtype_name(storage.dtype));
  size_t scales = 0;
  if (storage.dtype == DType::kU8) scales = 1;
  if (storage.dtype == DType::kI8) {
    if (!constant || type.shape.empty())
      return error(Code::kInvalid, "only constants with dimensions are stored as i8");
    scales = static_cast<size_t>(type.shape[0]);
  } else if (storage.dtype != DType::kU8 && storage.dtype != DType::kBf16) {
    return error(Code::kInvalid, "nothing is stored as {}", dtype_name(storage.dtype));
  }
  if (storage.scales.size() != scales)
    return error(Code::kInvalid, "a storage of {} scales, needs {}", storage.scales.size(), scales);
  for (const float scale : storage.scales) {
    if (!(scale >= 1e-30f && scale <= 1e30f))
      return error(Code::kInvalid, "a scale of {}: needs 1e-30 to 1e30", scale);
  }
  const int32_t last = storage.dtype == DType::kU8 ? 255 : 0;
  if (storage.zero_point < 0 || storage.zero_point > last)
    return error(Code::kInvalid, "a zero point of {}: needs 0 to {}", storage.zero_point, last);
  return {};
}

std::string storage_text(const Storage& storage) {
  std::string text(dtype_name(storage.dtype));
  if (storage.scales.empty()) return text;
  text += "(";
  for (size_t i = 0; i < storage.scales.size(); ++i)
    text += fmt::format("{}{}", i ? ", " : "", storage.scales[i]);
  if (storage.dtype == DType::kU8) text += fmt::format(", {}", storage.zero_point);
  return text + ")";
}

Status verify(const Graph& graph) {
  if (names(graph).size() != graph.values.size())
    return error(Code::kInvalid, "two values have the same name");
  std::vector<bool> ready(graph.values.size(), false);
  const auto produce = [&](ValueId id, std::string_view what) -> Status {
    if (!valid_id(graph, id)) return error(Code::kInvalid, "{} is not a value of the graph", what);
    if (ready[static_cast<size_t>(id)]) {
      return error(Code::kInvalid, "value '{}' is produced twice", graph.value(id).name);
    }
    ready[static_cast<size_t>(id)] = true;
    return {};
  };
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.name.empty()) return error(Code::kInvalid, "a value has no name");
    FERRY_CHECK_OK(check_shape(value.type.shape, value.type.dtype).within(value.name));
    FERRY_CHECK_OK(check_storage(value.storage, value.type, value.constant.has_value())
                       .within(fmt::format("value '{}'", value.name)));
    if (!value.constant) continue;
    if (value.constant->type() != value.type) {
      return error(Code::kInvalid, "constant '{}' is {}, its value says {}", value.name,
                   type_text(value.constant->type()), type_text(value.type));
    }
    ready[i] = true;
  }
  for (const ValueId id : graph.inputs) FERRY_CHECK_OK(produce(id, "an input"));

  for (const Node& node : graph.nodes) {
    if (node.op == nullptr) return error(Code::kInvalid, "node '{}' has no op", node.name);
    const std::string where = node_text(node);
    FERRY_CHECK_OK(check_arity(node).within(where));
    Attrs attrs = node.attrs;
    FERRY_CHECK_OK(check_attrs(*node.op, attrs, false).within(where));
    if (attrs != node.attrs)
      return error(Code::kInvalid, "{}: an attribute has the wrong type", where);
    for (const ValueId id : node.inputs) {
      if (id == kNone) continue;
      if (!valid_id(graph, id))
        return error(Code::kInvalid, "{}: uses a value that does not exist", where);
      if (!ready[static_cast<size_t>(id)]) {
        return error(Code::kInvalid, "{}: uses '{}' before it is produced", where,
                     graph.value(id).name);
      }
    }
    FERRY_TRY(types, infer_node(graph, node).within(where));
    if (types.size() != node.outputs.size()) {
      return error(Code::kInvalid, "{}: gives {} outputs, has {}", where, types.size(),
                   node.outputs.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      FERRY_CHECK_OK(produce(node.outputs[i], where));
      if (graph.value(node.outputs[i]).type != types[i]) {
        return error(Code::kInvalid, "{}: '{}' is {}, the op gives {}", where,
                     graph.value(node.outputs[i]).name,
                     type_text(graph.value(node.outputs[i]).type), type_text(types[i]));
      }
    }
  }
  if (graph.outputs.empty()) return error(Code::kInvalid, "the graph has no output");
  for (const ValueId id : graph.outputs) {
    if (!valid_id(graph, id)) return error(Code::kInvalid, "an output is not a value of the graph");
    if (!ready[static_cast<size_t>(id)]) {
      return error(Code::kInvalid, "output '{}' is never produced", graph.value(id).name);
    }
  }
  return {};
}

}  // namespace ferry::graph
