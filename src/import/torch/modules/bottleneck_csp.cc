// BottleneckCSP, and the C3 of YOLOv5 v3 (models.experimental.C3), which has the same four
// convolutions: cv4(act(bn(cat(cv3(m(cv1(x))), cv2(x))))).
#include "import/torch/modules/support/csp.h"

#include "import/torch/module_def.h"

namespace ferry::import::torch {

using graph::ValueId;

Result<ValueId> build_bottleneck_csp(Walker& walker, const Module& module,
                                     std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(hidden, walker.run_child(module, "cv1", x));
  FERRY_TRY(deep, walker.run_child(module, "m", hidden));
  FERRY_TRY(y1, walker.run_child(module, "cv3", deep));
  FERRY_TRY(y2, walker.run_child(module, "cv2", x));
  FERRY_TRY(joined, walker.concat(module.path + ".cat", {y1, y2}));
  FERRY_TRY(normal, walker.run_child(module, "bn", joined));
  FERRY_TRY(active, walker.run_child(module, "act", normal));
  return walker.run_child(module, "cv4", active);
}

namespace {
constexpr std::string_view kClasses[] = {"BottleneckCSP"};
}  // namespace

extern const ModuleDef module_bottleneck_csp;
const ModuleDef module_bottleneck_csp = {.classes = kClasses, .build = build_bottleneck_csp};

}  // namespace ferry::import::torch
