// GhostConv: half of the channels by a convolution, the other half by a cheap one of those.
// GhostBottleneck: conv(x) + shortcut(x).
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  if (short_name(module.class_name) == "GhostConv") {
    FERRY_TRY(y, walker.run_child(module, "cv1", x));
    FERRY_TRY(ghost, walker.run_child(module, "cv2", y));
    return walker.concat(module.path + ".cat", {y, ghost});
  }
  FERRY_TRY(y, walker.run_child(module, "conv", x));
  FERRY_TRY(shortcut, walker.run_child(module, "shortcut", x));
  return walker.add(module.path + ".add", y, shortcut);
}

constexpr std::string_view kClasses[] = {"GhostConv", "GhostBottleneck"};

}  // namespace

extern const ModuleDef module_ghost;
const ModuleDef module_ghost = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
