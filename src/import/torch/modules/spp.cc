// SPP: pools of several sizes side by side, joined.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(y, walker.run_child(module, "cv1", x));
  const Module* pools = module.child("m");
  if (pools == nullptr) return error(Code::kInvalid, "has no 'm'");
  std::vector<ValueId> parts = {y};
  for (const auto& [name, pool] : pools->children) {
    FERRY_TRY(part, walker.run(*pool, y));
    parts.push_back(part);
  }
  FERRY_TRY(joined, walker.concat(module.path + ".cat", std::move(parts)));
  return walker.run_child(module, "cv2", joined);
}

constexpr std::string_view kClasses[] = {"SPP"};

}  // namespace

extern const ModuleDef module_spp;
const ModuleDef module_spp = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
