// nn.BatchNorm2d in eval mode: the running statistics. SyncBatchNorm is the same once training is
// over.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(weight, walker.constant(module, "weight"));
  FERRY_TRY(bias, walker.constant(module, "bias"));
  FERRY_TRY(mean, walker.constant(module, "running_mean"));
  FERRY_TRY(variance, walker.constant(module, "running_var"));
  FERRY_TRY(epsilon, module.float_attribute("eps", 1e-5));
  return walker.op("batch_norm", module.path, {x, weight, bias, mean, variance},
                   {{"epsilon", epsilon}});
}

Status make(Maker& maker, Module& module, const MakeArgs& args) {
  maker.batch_norm(module, args.c1);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"BatchNorm2d", Yaml::kNorm}, {"SyncBatchNorm"}};

}  // namespace

extern const ModuleDef module_batch_norm2d;
const ModuleDef module_batch_norm2d = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
