// nn.Sequential: children one after the other. A repeated layer of a model yaml is one, too.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  ValueId value = x;
  for (const auto& [name, child] : module.children) {
    FERRY_TRY(next, walker.run(*child, value));
    value = next;
  }
  return value;
}

constexpr ModuleClass kClasses[] = {{"Sequential"}};

}  // namespace

extern const ModuleDef module_sequential;
const ModuleDef module_sequential = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
