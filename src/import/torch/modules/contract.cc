// Contract and Expand: blocks of pixels become channels, and back.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(gain, module.int_attribute("gain", 2));
  const bool is_contract = short_name(module.class_name) == "Contract";
  return walker.op(is_contract ? "space_to_depth" : "depth_to_space", module.path, {x},
                   {{"block", gain}, {"order", std::string("rows")}});
}

Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(gain, args.integer(0, 2));
  maker.set(module, "gain", gain);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"Contract", Yaml::kContract}, {"Expand", Yaml::kExpand}};

}  // namespace

extern const ModuleDef module_contract;
const ModuleDef module_contract = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
