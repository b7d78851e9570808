// Conv: convolution, batch norm, activation. A fused checkpoint has no batch norm any more; DWConv
// is a Conv with groups.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

// What folding will save: scale and bias go, the convolution gains a bias when it has none.
void count_folding(Walker& walker, const Module& module) {
  const Module* conv = module.child("conv");
  const Module* bn = module.child("bn");
  if (conv == nullptr || bn == nullptr || bn->tensor("weight") == nullptr) return;
  const int64_t channels = graph::elements(bn->tensor("weight")->type.shape);
  walker.count_folded(conv->tensor("bias") == nullptr ? channels : 2 * channels);
}

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(y, walker.run_child(module, "conv", x));
  FERRY_TRY(normal, walker.run_optional(module, "bn", y));
  count_folding(walker, module);
  return walker.run_optional(module, "act", normal);
}

constexpr std::string_view kClasses[] = {"Conv", "DWConv"};

}  // namespace

extern const ModuleDef module_conv;
const ModuleDef module_conv = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
