// Bottleneck and CrossConv: two convolutions, and the input added when `add` says so.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(hidden, walker.run_child(module, "cv1", x));
  FERRY_TRY(y, walker.run_child(module, "cv2", hidden));
  FERRY_TRY(shortcut, module.bool_attribute("add", false));
  if (!shortcut) return y;
  return walker.add(module.path + ".add", x, y);
}

constexpr std::string_view kClasses[] = {"Bottleneck", "CrossConv"};

}  // namespace

extern const ModuleDef module_bottleneck;
const ModuleDef module_bottleneck = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
