// Conv: convolution, batch norm, activation. A fused checkpoint has no batch norm any more; DWConv
// is a Conv with groups.
#include <numeric>

#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

// What folding will save: scale and bias go, the convolution gains a bias when it has none.
void count_folding(Walker& walker, const Module& module) {
  const Module* conv = module.child("conv");
  const Module* bn = module.child("bn");
  if (conv == nullptr || bn == nullptr || bn->tensor("weight") == nullptr) return;
  const int64_t channels = graph::elements(bn->tensor("weight")->type.shape);
  walker.count_folded(conv->tensor("bias") == nullptr ? channels : 2 * channels);
}

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(y, walker.run_child(module, "conv", x));
  FERRY_TRY(normal, walker.run_optional(module, "bn", y));
  count_folding(walker, module);
  return walker.run_optional(module, "act", normal);
}

// Conv(c1, c2, k, s, p, g, d, act); DWConv(c1, c2, k, s, d, act)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  const bool is_depthwise = args.name == "DWConv";
  FERRY_TRY(kernel, args.integers(0, {1}));
  FERRY_TRY(stride, args.integers(1, {1}));
  if (kernel.size() > 2 || stride.size() > 2 || kernel.empty() || stride.empty()) {
    return error(Code::kInvalid, "{}: a kernel of {} and a stride of {} numbers", module.where(),
                 kernel.size(), stride.size());
  }
  ConvSpec spec = {.kernel = {kernel.front(), kernel.back()},
                   .stride = {stride.front(), stride.back()}};
  if (is_depthwise) {
    FERRY_TRY(dilation, args.integer(2, 1));
    FERRY_TRY(act, args.boolean(3, true));
    spec.groups = std::gcd(args.c1, args.c2);
    spec.dilation = dilation;
    spec.act = act;
  } else {
    FERRY_TRY(padding, args.integer(2, 0));
    FERRY_TRY(groups, args.integer(3, 1));
    FERRY_TRY(dilation, args.integer(4, 1));
    FERRY_TRY(act, args.boolean(5, true));
    if (args.has(2)) spec.padding = Pair{padding, padding};
    spec.groups = groups;
    spec.dilation = dilation;
    spec.act = act;
  }
  maker.conv_block(module, args.c1, args.c2, spec);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"Conv", Yaml::kScaled}, {"DWConv", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_conv;
const ModuleDef module_conv = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
