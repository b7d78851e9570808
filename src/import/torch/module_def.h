// What ferry knows about a module class: one row, defined in one file of src/import/torch/modules.
// The folder is the table: `modules/<name>.cc` defines `const ModuleDef module_<name>`.
#pragma once

#include <span>
#include <string_view>

#include "import/torch/module.h"
#include "import/torch/walker.h"

namespace ferry::import::torch {

struct ModuleDef {
  // Last components of the class names it answers to, whatever Python module they live in: "Conv"
  // stands for models.common.Conv and for a fork's my.blocks.Conv.
  std::span<const std::string_view> classes;
  // Appends what forward() computes in eval mode and returns its output. `inputs` is what the
  // layer's `f` names.
  Result<graph::ValueId> (*build)(Walker& walker, const Module& module,
                                  std::span<const graph::ValueId> inputs);
};

std::span<const ModuleDef* const> module_table();
// By the class's last component; null when ferry does not know it.
const ModuleDef* find_module_def(std::string_view class_name);

}  // namespace ferry::import::torch
