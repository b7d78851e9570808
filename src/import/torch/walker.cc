#include "import/torch/walker.h"

#include <algorithm>

#include "import/torch/module_def.h"
#include "ops/table.h"

namespace ferry::import::torch {
namespace {

using graph::kNone;
using graph::Shape;
using graph::Tensor;
using graph::ValueId;

// Modules may be shared, so a small file can describe a network of any size.
constexpr int64_t kMaxRuns = 20'000;
constexpr size_t kMaxNodes = 10'000;  // yolov5x6 has 800

// Layers that post-process: ferry does that itself, outside the network.
bool is_postprocessing(std::string_view class_name) { return short_name(class_name) == "NMS"; }

}  // namespace

const ModuleDef* find_module_def(std::string_view class_name, Yaml* yaml) {
  const std::string_view last = short_name(class_name);
  for (const ModuleDef* def : module_table()) {
    const auto hit = std::find_if(def->classes.begin(), def->classes.end(),
                                  [&](const ModuleClass& c) { return c.name == last; });
    if (hit == def->classes.end()) continue;
    if (yaml != nullptr) *yaml = hit->yaml;
    return def;
  }
  return nullptr;
}

Result<ValueId> only_input(std::span<const ValueId> inputs) {
  if (inputs.size() == 1) return inputs[0];
  return error(Code::kInvalid, "needs one input, gets {}", inputs.size());
}

Result<ValueId> Walker::run(const Module& module, std::span<const ValueId> inputs) {
  if (++runs_ > kMaxRuns)
    return error(Code::kNoMemory, "the network has more than {} modules", kMaxRuns);
  const ModuleDef* def = find_module_def(module.class_name);
  if (def == nullptr) {
    error_is_located_ = true;
    return error(Code::kUnsupported, "{}: ferry does not know this module", module.where());
  }
  auto output = def->build(*this, module, inputs);
  if (output.ok()) return output;
  if (error_is_located_) return output;
  error_is_located_ = true;
  return std::move(output).within(module.where());
}

Result<ValueId> Walker::run_child(const Module& module, std::string_view name, ValueId input) {
  const Module* child = module.child(name);
  if (child == nullptr) return error(Code::kInvalid, "has no '{}'", name);
  return run(*child, input);
}

Result<ValueId> Walker::run_optional(const Module& module, std::string_view name, ValueId input) {
  const Module* child = module.child(name);
  return child == nullptr ? Result<ValueId>(input) : run(*child, input);
}

Result<ValueId> Walker::op(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
                           graph::Attrs attrs) {
  if (graph_.nodes.size() >= kMaxNodes) {
    return error(Code::kNoMemory, "the network has more than {} nodes", kMaxNodes);
  }
  if (name.empty()) name = op;
  const int use = ++name_uses_[std::string(name)];  // a shared module runs more than once
  const std::string unique = use == 1 ? std::string(name) : fmt::format("{}:{}", name, use);
  return graph::add_op(graph_, ops::op(op), unique, std::move(inputs), std::move(attrs));
}

ValueId Walker::constant(std::string_view name, Tensor tensor) {
  return graph::add_constant(graph_, graph::unique_name(graph_, name), std::move(tensor));
}

Result<ValueId> Walker::constant(const Module& module, std::string_view name) {
  const auto key = std::make_pair(&module, std::string(name));
  if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
  const ModuleTensor* stored = module.tensor(name);
  if (stored == nullptr || !stored->tensor)
    return error(Code::kInvalid, "has no tensor '{}'", name);
  constant_budget_ -= graph::elements(stored->type.shape) * 4;
  if (constant_budget_ < 0)
    return error(Code::kNoMemory, "the weights unpack to many times the file's length");
  FERRY_TRY(tensor, stored->tensor->cast(graph::DType::kF32));
  const ValueId id = constant(fmt::format("{}.{}", module.path, name), std::move(tensor));
  constants_.emplace(key, id);
  return id;
}

Result<ValueId> Walker::optional_constant(const Module& module, std::string_view name) {
  return module.tensor(name) == nullptr ? Result<ValueId>(kNone) : constant(module, name);
}

Result<std::optional<Tensor>> Walker::attribute_tensor(const Module& module,
                                                       std::string_view name) {
  std::optional<Tensor> stored;
  const Value* value = module.attribute(name);
  if (const ModuleTensor* t = module.tensor(name); t != nullptr && t->tensor) {
    stored = *t->tensor;
  } else if (value != nullptr && is_tensor(*value) && tensors_ != nullptr) {
    FERRY_TRY(tensor, tensors_->read(*value).within(fmt::format("'{}'", name)));
    stored = std::move(tensor);
  }
  if (!stored) return std::optional<Tensor>();
  constexpr int64_t kMaxElements = 1 << 20;  // strides, anchors: a few numbers
  if (stored->size() > kMaxElements)
    return error(Code::kInvalid, "'{}' has {} elements", name, stored->size());
  FERRY_TRY(tensor, stored->cast(graph::DType::kF32));
  return std::optional(std::move(tensor));
}

// `f` is -1 (the layer before), another index, or a list of them; negative ones count back from
// this layer.
Result<std::vector<ValueId>> Walker::layer_inputs(const Module& layer,
                                                  const std::vector<ValueId>& outputs) {
  const Value* from = layer.attribute("f");
  Shape indices = {-1};
  if (from != nullptr && !from->is_none()) {
    const size_t count = from->is_sequence() ? from->items.size() : 1;
    auto ints = as_ints(from, count);
    if (!ints)
      return error(Code::kInvalid, "{}: 'f' is {}, needs layer numbers", layer.where(),
                   describe(*from));
    indices = *std::move(ints);
  }
  std::vector<ValueId> inputs;
  const auto here =
      std::ssize(outputs) - 1;  // outputs[0] is the picture; layer i's output is outputs[i + 1]
  for (const int64_t index : indices) {
    const int64_t layer_index = index < 0 ? here + index : index;
    const bool before_first = here == 0 && index == -1;
    if (!before_first && (layer_index < 0 || layer_index >= here)) {
      return error(Code::kInvalid,
                   "{}: takes its input from layer {}, which does not come before it",
                   layer.where(), index);
    }
    inputs.push_back(outputs[static_cast<size_t>(layer_index + 1)]);
  }
  return inputs;
}

Result<Walker::Output> Walker::walk_layers(const Module& layers, const Shape& images) {
  FERRY_CHECK_OK(graph::check_shape(images, graph::DType::kF32));
  std::vector<ValueId> outputs = {graph::add_input(graph_, "images", {graph::DType::kF32, images})};
  for (const auto& [name, layer] : layers.children) {
    if (is_postprocessing(layer->class_name)) {
      warn(fmt::format("{} is left out: ferry does that itself.", layer->where()));
      break;
    }
    FERRY_TRY(inputs, layer_inputs(*layer, outputs));
    FERRY_TRY(output, run(*layer, inputs));
    std::string& value_name = graph_.value(output).name;
    const bool is_new = std::find(outputs.begin(), outputs.end(), output) == outputs.end();
    if (is_new && value_name != layer->path) value_name = graph::unique_name(graph_, layer->path);
    outputs.push_back(output);
  }
  if (outputs.size() == 1) return error(Code::kInvalid, "{} has no layers", layers.where());
  graph_.outputs = {outputs.back()};
  graph::prune(graph_);
  FERRY_CHECK_OK(graph::verify(graph_));
  return Output{std::move(graph_), std::move(detector_), is_any_size_, folded_parameters_,
                std::move(warnings_)};
}

}  // namespace ferry::import::torch
