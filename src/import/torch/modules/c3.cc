// C3 and its family: cv3(cat(m(cv1(x)), cv2(x))), where `m` is a sequence of Bottleneck (C3),
// CrossConv (C3x) or GhostBottleneck (C3Ghost), a TransformerBlock (C3TR) or an SPP (C3SPP).
#include "import/torch/module_def.h"
#include "import/torch/modules/support/csp.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  if (module.child("cv4") != nullptr)
    return build_bottleneck_csp(walker, module, inputs);  // v3's C3
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(hidden, walker.run_child(module, "cv1", x));
  FERRY_TRY(deep, walker.run_child(module, "m", hidden));
  FERRY_TRY(side, walker.run_child(module, "cv2", x));
  FERRY_TRY(joined, walker.concat(module.path + ".cat", {deep, side}));
  return walker.run_child(module, "cv3", joined);
}

constexpr std::string_view kClasses[] = {"C3", "C3x", "C3TR", "C3SPP", "C3Ghost"};

}  // namespace

extern const ModuleDef module_c3;
const ModuleDef module_c3 = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
