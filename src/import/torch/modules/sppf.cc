// SPPF: one pool applied three times in a row, all joined; equal to SPP with sizes 5, 9, 13.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(y, walker.run_child(module, "cv1", x));
  std::vector<ValueId> parts = {y};
  for (int i = 0; i < 3; ++i) {
    FERRY_TRY(pooled, walker.run_child(module, "m", parts.back()));
    parts.push_back(pooled);
  }
  FERRY_TRY(joined, walker.concat(module.path + ".cat", std::move(parts)));
  return walker.run_child(module, "cv2", joined);
}

constexpr std::string_view kClasses[] = {"SPPF"};

}  // namespace

extern const ModuleDef module_sppf;
const ModuleDef module_sppf = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
