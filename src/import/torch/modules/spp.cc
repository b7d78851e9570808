// SPP: pools of several sizes side by side, joined.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(y, walker.run_child(module, "cv1", x));
  const Module* pools = module.child("m");
  if (pools == nullptr) return error(Code::kInvalid, "has no 'm'");
  std::vector<ValueId> parts = {y};
  for (const auto& [name, pool] : pools->children) {
    FERRY_TRY(part, walker.run(*pool, y));
    parts.push_back(part);
  }
  FERRY_TRY(joined, walker.concat(module.path + ".cat", std::move(parts)));
  return walker.run_child(module, "cv2", joined);
}

// SPP(c1, c2, k=(5, 9, 13))
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(kernels, args.integers(0, {5, 9, 13}));
  const int64_t hidden = args.c1 / 2;
  maker.conv_block(module, "cv1", args.c1, hidden);
  maker.conv_block(module, "cv2", hidden * (std::ssize(kernels) + 1), args.c2);
  Module& pools = maker.child(module, "m", "torch.nn.modules.container.ModuleList");
  for (size_t i = 0; i < kernels.size(); ++i) {
    Module& pool = maker.child(pools, fmt::format("{}", i), "torch.nn.modules.pooling.MaxPool2d");
    maker.max_pool(pool, kernels[i], 1, kernels[i] / 2);
  }
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"SPP", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_spp;
const ModuleDef module_spp = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
