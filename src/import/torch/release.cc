// What tells releases apart (checked against the tags of the upstream repository): the stem is
// Focus up to v5 and a 6x6 convolution since v6; the activation of Conv is LeakyReLU in v3.0,
// Hardswish in v3.1, SiLU since v4; the model's class is DetectionModel since v6.2; names are a
// dict since v7.
#include "import/torch/release.h"

namespace ferry::import::torch {
namespace {

// The activation of the first Conv at or below `module`; empty when there is none.
std::string_view first_activation(const Module& module, int depth = 0) {
  if (const Module* act = module.child("act")) return short_name(act->class_name);
  if (depth > 8) return {};
  for (const auto& [name, child] : module.children) {
    const std::string_view found = first_activation(*child, depth + 1);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

std::string guess_release(const Module& model, const Module& layers) {
  if (layers.children.empty()) return {};
  const Module& stem = *layers.children[0].second;
  if (short_name(stem.class_name) == "Focus") {
    const std::string_view act = first_activation(stem);
    if (act == "LeakyReLU") return "YOLOv5 v3.0";
    if (act == "Hardswish" || act == "HardSwish") return "YOLOv5 v3.1";
    return "YOLOv5 v4 or v5";
  }
  const std::string_view class_name = short_name(model.class_name);
  const bool is_yolov5 = model.class_name.starts_with("models.yolo.");
  if (!is_yolov5) return {};
  const Value* names = model.attribute("names");
  const bool has_named_dict = names != nullptr && is_mapping(*names);
  if (class_name == "DetectionModel")
    return has_named_dict ? "YOLOv5 v7 or newer" : "YOLOv5 v6.2 or v7";
  return has_named_dict ? "YOLOv5 v6 or v7" : "YOLOv5 v6.0 or v6.1";
}

}  // namespace ferry::import::torch
