// Focus (YOLOv5 v2 to v5): the four pixels of every 2 x 2 block become channels, then a Conv. The
// order is that of torch.cat((x[::2, ::2], x[1::2, ::2], x[::2, 1::2], x[1::2, 1::2])): down the
// columns of the block.
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

constexpr std::string_view kClasses[] = {"Focus"};

}  // namespace

extern const ModuleDef module_focus;
const ModuleDef module_focus = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
