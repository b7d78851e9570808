// From a module tree to a Model: what is common to checkpoints and model yaml files.
#include "import/torch/assemble.h"

#include <algorithm>

#include "import/torch/module_def.h"
#include "import/torch/release.h"
#include "import/torch/walker.h"

namespace ferry::import::torch {
namespace {

using graph::Shape;

// AutoShape and DistributedDataParallel wrap the model in another module.
const Module& unwrap(const Module& module) {
  const Module* inner = &module;
  for (int depth = 0; depth < 8; ++depth) {
    const std::string_view name = short_name(inner->class_name);
    const bool is_wrapper = name == "AutoShape" || name == "autoShape" ||
                            name == "DetectMultiBackend" || name == "DataParallel" ||
                            name == "DistributedDataParallel";
    const Module* next =
        inner->child("model") != nullptr ? inner->child("model") : inner->child("module");
    if (!is_wrapper || next == nullptr) break;
    inner = next;
  }
  return *inner;
}

// Layers are called model.<i> whatever wraps the model.
void drop_prefix(ModuleTree& tree, const std::string& wrapper) {
  const std::string prefix = wrapper + ".";
  if (wrapper.empty()) return;
  for (Module& module : tree.modules) {
    if (module.path.starts_with(prefix)) module.path.erase(0, prefix.size());
  }
}

// Models that are another task or another family, told by their class before any layer is looked
// at.
Status refuse_other_models(const Module& model, const Module& layers) {
  const std::string_view name = short_name(model.class_name);
  const Module* last = layers.children.empty() ? nullptr : layers.children.back().second;
  const std::string_view head = last == nullptr ? std::string_view() : short_name(last->class_name);
  if (name == "SegmentationModel" || head == "Segment") {
    return error(Code::kUnsupported,
                 "{} is a segmentation model (head {}); ferry runs detection models",
                 model.class_name, last == nullptr ? "" : last->where());
  }
  if (name == "ClassificationModel" || head == "Classify") {
    return error(Code::kUnsupported,
                 "{} is a classification model (head {}); ferry runs detection models",
                 model.class_name, last == nullptr ? "" : last->where());
  }
  return {};
}

// The layers that no row answers to, in order, each class once.
std::vector<const Module*> unknown_layers(const Module& layers) {
  std::vector<const Module*> unknown;
  std::vector<std::string_view> seen;
  for (const auto& [name, layer] : layers.children) {
    const bool is_new = std::find(seen.begin(), seen.end(), layer->class_name) == seen.end();
    if (!is_new || find_module_def(layer->class_name) != nullptr ||
        short_name(layer->class_name) == "NMS")
      continue;
    seen.push_back(layer->class_name);
    unknown.push_back(layer);
  }
  return unknown;
}

// The first module at any depth that no row answers to; null when there is none. Lists of modules
// are no modules.
const Module* first_unknown(const Module& module, int depth = 0) {
  const std::string_view name = short_name(module.class_name);
  const bool is_part = name == "ModuleList" || name == "MultiheadAttention" ||
                       name == "NonDynamicallyQuantizableLinear";
  if (!is_part && find_module_def(name) == nullptr) return &module;
  for (const auto& [child_name, child] : module.children) {
    const Module* unknown = depth < 8 ? first_unknown(*child, depth + 1) : nullptr;
    if (unknown != nullptr) return unknown;
  }
  return nullptr;
}

Status refuse_unknown_layers(const Module& model, const Module& layers) {
  if (model.class_name.starts_with("ultralytics.")) {
    const Module* stranger = first_unknown(layers);
    const std::string detail =
        stranger == nullptr
            ? ""
            : fmt::format(": {} is a module ferry does not know", stranger->where());
    return error(Code::kUnsupported,
                 "{} is a model of the ultralytics package (YOLOv8 or newer, or YOLOv5u), not a "
                 "YOLOv5 of v3 to v7{}. "
                 "Export it to ONNX to run it as a plain graph",
                 model.class_name, detail);
  }
  const auto unknown = unknown_layers(layers);
  if (unknown.empty()) return {};
  std::string others;
  for (size_t i = 1; i < unknown.size(); ++i) {
    others += fmt::format("{}{}", i == 1 ? "; so are " : ", ", unknown[i]->where());
  }
  return error(Code::kUnsupported,
               "{} is a module ferry does not know{}. Is this a fork of YOLOv5?",
               unknown[0]->where(), others);
}

// Names as a list, or a dict of class numbers. Missing ones become their number.
std::vector<std::string> read_names(const Value* names, int64_t nc,
                                    std::vector<std::string>& warnings) {
  std::vector<std::string> result;
  for (int64_t i = 0; i < nc; ++i) result.push_back(fmt::format("{}", i));
  if (names == nullptr) return result;
  int64_t found = 0;
  const auto set = [&](int64_t id, const Value& name) {
    ++found;
    if (id >= 0 && id < nc && name.is_string())
      result[static_cast<size_t>(id)] = std::string(name.text);
  };
  if (names->is_sequence()) {
    for (size_t i = 0; i < names->items.size(); ++i) set(static_cast<int64_t>(i), *names->items[i]);
  }
  for (const auto& [id, name] : entries(*names)) set(as_int(id).value_or(-1), *name);
  if (found != nc)
    warnings.push_back(fmt::format("The file names {} classes, but its head has {}.", found, nc));
  return result;
}

Status check_size(const Shape& images, const std::vector<double>& strides) {
  const double largest = strides.empty() ? 32 : *std::max_element(strides.begin(), strides.end());
  const auto step = static_cast<int64_t>(largest);
  for (const int64_t size : {images[2], images[3]}) {
    if (step < 1 || size % step == 0) continue;
    return error(
        Code::kInvalid,
        "input {} x {}: {} is not a multiple of the model's largest stride {}; use {} or {}",
        images[2], images[3], size, step, std::max(size / step, int64_t{1}) * step,
        (size / step + 1) * step);
  }
  return {};
}

// The largest stride the file tells before any layer is walked; empty when it tells none.
Result<std::vector<double>> stored_strides(TensorReader* tensors, const Module& model,
                                           const Module& layers) {
  std::vector<double> strides;
  if (tensors == nullptr) return strides;
  const Value* candidates[] = {
      layers.children.empty() ? nullptr : layers.children.back().second->attribute("stride"),
      model.attribute("stride")};
  for (const Value* value : candidates) {
    if (value == nullptr || !is_tensor(*value) || !strides.empty()) continue;
    FERRY_TRY(stored, tensors->read(*value).within("the head's stride"));
    FERRY_TRY(tensor, stored.cast(graph::DType::kF32));
    if (tensor.size() <= 16) {
      for (const float s : tensor.as<float>()) {
        if (s >= 1 && s <= 4096) strides.push_back(s);
      }
    }
  }
  return strides;
}

int64_t input_channels(const Module& model) {
  const Value* yaml = model.attribute("yaml");
  const auto channels = yaml == nullptr ? std::nullopt : as_int(find(*yaml, "ch"));
  return channels && *channels >= 1 && *channels <= 4096 ? *channels : 3;
}

std::string_view weights_type(const ModuleTree& tree) {
  for (const Module& module : tree.modules) {
    for (const ModuleTensor& t : module.tensors) {
      if (t.is_parameter) return graph::dtype_name(t.type.dtype);
    }
  }
  return "f32";
}

}  // namespace

Result<Model> assemble(ModuleTree& tree, TensorReader* tensors, int64_t constant_bytes,
                       const ImportOptions& options) {
  const Module& model = unwrap(*tree.root);
  drop_prefix(tree, model.path);
  const Module* layers = model.child("model");
  if (layers == nullptr) {
    return error(Code::kUnsupported, "{} has no 'model' of layers, as YOLOv5's Model has",
                 model.where());
  }
  FERRY_CHECK_OK(refuse_other_models(model, *layers));
  FERRY_CHECK_OK(refuse_unknown_layers(model, *layers));

  const Shape images = {options.batch, input_channels(model),
                        options.height > 0 ? options.height : 640,
                        options.width > 0 ? options.width : 640};
  FERRY_TRY(strides, stored_strides(tensors, model, *layers));
  FERRY_CHECK_OK(check_size(images, strides));
  Walker walker(tensors, constant_bytes);
  FERRY_TRY(walked, walker.walk_layers(*layers, images));
  FERRY_CHECK_OK(check_size(images, walked.detector.strides));

  Model result;
  result.graph = std::move(walked.graph);
  result.any_size = walked.any_size;
  result.detector = std::move(walked.detector);
  SourceInfo& source = result.source;
  source.format = std::string(weights_type(tree));
  source.release = guess_release(model, *layers);
  source.producer = std::string(model.class_name);
  source.params_stored = count_parameters(tree);
  source.params_fused = source.params_stored - walked.folded_parameters;
  source.warnings = std::move(walked.warnings);
  const Value* names = model.attribute("names");
  result.detector.names = read_names(names, result.detector.nc, source.warnings);
  return result;
}

}  // namespace ferry::import::torch
