// What ferry knows about a module class: one row, defined in one file of src/import/torch/modules.
// The folder is the table: `modules/<name>.cc` defines `const ModuleDef module_<name>`.
#pragma once

#include <span>
#include <string_view>

#include "import/torch/module.h"
#include "import/torch/walker.h"

namespace ferry::import::torch {

class Maker;
struct MakeArgs;

// How a line [from, number, class, args] of a model yaml becomes a module of this class (upstream's
// parse_model).
enum class Yaml {
  kAbsent,  // not in yaml files
  kScaled,  // args[0] is the output's channels, times width_multiple, up to a multiple of 8; input
            // channels go before it
  kRepeated,  // kScaled, and the number becomes an argument behind the channels instead of copies
              // in a row
  kSame,      // args as they stand; channels stay
  kNorm,      // the only argument is the number of channels
  kConcat,    // channels add up
  kContract,  // channels times args[0] squared
  kExpand,    // channels over args[0] squared
  kDetect,    // the head
};

// One class name: its last component, whatever Python module it lives in. "Conv" stands for
// models.common.Conv and for a fork's my.blocks.Conv.
struct ModuleClass {
  std::string_view name;
  Yaml yaml = Yaml::kAbsent;
};

struct ModuleDef {
  std::span<const ModuleClass> classes;
  // Appends what forward() computes in eval mode and returns its output. `inputs` is what the
  // layer's `f` names.
  Result<graph::ValueId> (*build)(Walker& walker, const Module& module,
                                  std::span<const graph::ValueId> inputs);
  // Gives `module` the attributes, tensors and children that __init__(c1, c2, …) would (maker.h).
  // Null: not in yaml files.
  Status (*make)(Maker& maker, Module& module, const MakeArgs& args) = nullptr;
};

std::span<const ModuleDef* const> module_table();
// By the class's last component; null when ferry does not know it. `yaml`, when given, gets the
// class's rule.
const ModuleDef* find_module_def(std::string_view class_name, Yaml* yaml = nullptr);

}  // namespace ferry::import::torch
