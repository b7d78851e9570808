// SPPF: one pool applied three times in a row, all joined; equal to SPP with sizes 5, 9, 13.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(y, walker.run_child(module, "cv1", x));
  std::vector<ValueId> parts = {y};
  for (int i = 0; i < 3; ++i) {
    FERRY_TRY(pooled, walker.run_child(module, "m", parts.back()));
    parts.push_back(pooled);
  }
  FERRY_TRY(joined, walker.concat(module.path + ".cat", std::move(parts)));
  return walker.run_child(module, "cv2", joined);
}

// SPPF(c1, c2, k=5)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(kernel, args.integer(0, 5));
  const int64_t hidden = args.c1 / 2;
  maker.conv_block(module, "cv1", args.c1, hidden);
  maker.conv_block(module, "cv2", hidden * 4, args.c2);
  maker.max_pool(maker.child(module, "m", "torch.nn.modules.pooling.MaxPool2d"), kernel, 1,
                 kernel / 2);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"SPPF", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_sppf;
const ModuleDef module_sppf = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
