// nn.ZeroPad2d: `padding` is left, right, top, bottom.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::Ints;
using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(sides, module.ints_attribute("padding", 4, {0, 0, 0, 0}));
  return walker.op("pad", module.path, {x},
                   {{"pads", Ints{0, 0, sides[2], sides[0], 0, 0, sides[3], sides[1]}}});
}

Status make(Maker& maker, Module& module, const MakeArgs& args) {
  if (args.has(0)) maker.set(module, "padding", args.rest[0]);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"ZeroPad2d", Yaml::kSame}};

}  // namespace

extern const ModuleDef module_zero_pad2d;
const ModuleDef module_zero_pad2d = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
