#include "ops/evaluate.h"

#include <algorithm>
#include <optional>

#include "graph/op_def.h"

namespace ferry::ops {

using namespace graph;

Result<std::vector<Tensor>> evaluate_node(const Node& node, std::span<const Tensor* const> inputs) {
  std::vector<const TensorType*> types;
  for (const Tensor* input : inputs) types.push_back(input ? &input->type() : nullptr);
  const std::string where = fmt::format("{} '{}'", node.op->name, node.name);
  if (node.op->eval == nullptr)
    return error(Code::kUnsupported, "{}: has no reference evaluation", where);

  FERRY_TRY(out_types, node.op->infer({node, types, inputs}).within(where));
  std::vector<Tensor> outputs;
  for (TensorType& type : out_types) {
    FERRY_TRY(tensor, Tensor::make(std::move(type)).within(where));
    outputs.push_back(std::move(tensor));
  }
  std::vector<Tensor*> pointers;
  for (Tensor& output : outputs) pointers.push_back(&output);
  FERRY_CHECK_OK(node.op->eval({node, inputs, pointers}).within(where));
  return outputs;
}

namespace {

// What memory does to a value that is not kept as f32.
Status round_stored(const Storage& storage, Tensor& tensor) {
  if (storage.dtype == DType::kF32) return {};
  FERRY_TRY(rounded, Tensor::make(tensor.type()));
  std::ranges::copy(tensor.as<float>(), rounded.mut<float>().begin());
  round_to(storage, rounded);
  tensor = std::move(rounded);
  return {};
}

}  // namespace

Result<std::vector<Tensor>> evaluate(const Graph& graph, std::span<const Tensor> inputs) {
  return evaluate(graph, inputs, {});
}

Result<std::vector<Tensor>> evaluate(const Graph& graph, std::span<const Tensor> inputs,
                                     std::span<const ValueId> keep) {
  if (inputs.size() != graph.inputs.size()) {
    return error(Code::kInvalid, "the graph has {} inputs, {} tensors given", graph.inputs.size(),
                 inputs.size());
  }
  std::vector<std::optional<Tensor>> live(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) live[i] = graph.values[i].constant;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    if (input.type != inputs[i].type()) {
      return error(Code::kInvalid, "input '{}' is {}, a {} was given", input.name,
                   type_text(input.type), type_text(inputs[i].type()));
    }
    live[static_cast<size_t>(graph.inputs[i])] = inputs[i];
    FERRY_CHECK_OK(round_stored(input.storage, *live[static_cast<size_t>(graph.inputs[i])]));
  }

  std::vector<int> uses_left(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id != kNone) ++uses_left[static_cast<size_t>(id)];
    }
  }
  for (const ValueId id : graph.outputs) ++uses_left[static_cast<size_t>(id)];
  for (const ValueId id : keep) ++uses_left[static_cast<size_t>(id)];

  for (const Node& node : graph.nodes) {
    std::vector<const Tensor*> arguments;
    for (const ValueId id : node.inputs) {
      arguments.push_back(id == kNone ? nullptr : &*live[static_cast<size_t>(id)]);
    }
    FERRY_TRY(outputs, evaluate_node(node, arguments));
    for (size_t i = 0; i < outputs.size(); ++i) {
      FERRY_CHECK_OK(round_stored(graph.value(node.outputs[i]).storage, outputs[i]));
      live[static_cast<size_t>(node.outputs[i])] = std::move(outputs[i]);
    }
    for (const ValueId id : node.inputs) {
      if (id != kNone && --uses_left[static_cast<size_t>(id)] == 0)
        live[static_cast<size_t>(id)].reset();
    }
  }

  std::vector<Tensor> results;
  for (const ValueId id : graph.outputs) results.push_back(*live[static_cast<size_t>(id)]);
  for (const ValueId id : keep) results.push_back(*live[static_cast<size_t>(id)]);
  return results;
}

}  // namespace ferry::ops
