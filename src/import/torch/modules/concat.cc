// Concat: joins the outputs of several layers.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(axis, module.int_attribute("d", 1));
  return walker.op("concat", module.path, {inputs.begin(), inputs.end()}, {{"axis", axis}});
}

Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(axis, args.integer(0, 1));
  maker.set(module, "d", axis);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"Concat", Yaml::kConcat}};

}  // namespace

extern const ModuleDef module_concat;
const ModuleDef module_concat = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
