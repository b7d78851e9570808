// Focus (YOLOv5 v2 to v5): the four pixels of every 2 x 2 block become channels, then a Conv. The
// order is that of torch.cat((x[::2, ::2], x[1::2, ::2], x[::2, 1::2], x[1::2, 1::2])): down the
// columns of the block.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(blocks, walker.op("space_to_depth", module.path + ".focus", {x},
                              {{"block", int64_t{2}}, {"order", std::string("columns")}}));
  return walker.run_child(module, "conv", blocks);
}

// Focus(c1, c2, k, s, p, g, act): its Conv sees four times the channels.
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  return maker.child_of(module, "conv", "models.common.Conv",
                        {.c1 = args.c1 * 4, .c2 = args.c2, .rest = args.rest});
}

constexpr ModuleClass kClasses[] = {{"Focus", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_focus;
const ModuleDef module_focus = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
