// Modules that do nothing in eval mode.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

Result<graph::ValueId> build(Walker&, const Module&, std::span<const graph::ValueId> inputs) {
  return only_input(inputs);
}

Status make(Maker& maker, Module&, const MakeArgs&) { return maker.status(); }

constexpr ModuleClass kClasses[] = {
    {"Identity", Yaml::kSame}, {"Dropout", Yaml::kSame}, {"Dropout2d", Yaml::kSame}};

}  // namespace

extern const ModuleDef module_identity;
const ModuleDef module_identity = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
