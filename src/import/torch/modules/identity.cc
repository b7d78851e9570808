// Modules that do nothing in eval mode.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

Result<graph::ValueId> build(Walker&, const Module&, std::span<const graph::ValueId> inputs) {
  return only_input(inputs);
}

constexpr std::string_view kClasses[] = {"Identity", "Dropout", "Dropout2d"};

}  // namespace

extern const ModuleDef module_identity;
const ModuleDef module_identity = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
