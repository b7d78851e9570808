// Concat: joins the outputs of several layers.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(axis, module.int_attribute("d", 1));
  return walker.op("concat", module.path, {inputs.begin(), inputs.end()}, {{"axis", axis}});
}

constexpr std::string_view kClasses[] = {"Concat"};

}  // namespace

extern const ModuleDef module_concat;
const ModuleDef module_concat = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
