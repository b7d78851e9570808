// nn.Conv2d. The weight's shape is the truth; attributes give stride, padding, dilation and groups.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"
#include "import/torch/modules/support/padding.h"

namespace ferry::import::torch {
namespace {

using graph::Ints;
using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(weight, walker.constant(module, "weight"));
  FERRY_TRY(bias, walker.optional_constant(module, "bias"));
  if (walker.shape(weight).size() != 4)
    return error(Code::kInvalid, "weight is {}", graph::shape_text(walker.shape(weight)));
  FERRY_TRY(strides, module.ints_attribute("stride", 2, {1, 1}));
  FERRY_TRY(dilations, module.ints_attribute("dilation", 2, {1, 1}));
  FERRY_TRY(groups, module.int_attribute("groups", 1));
  FERRY_TRY(pads, conv_pads(module, walker.shape(weight)[2], walker.shape(weight)[3], dilations));
  return walker.op(
      "conv2d", module.path, {x, weight, bias},
      {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"groups", groups}});
}

// nn.Conv2d(c1, c2, kernel, stride, padding, dilation, groups, bias)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(kernel, args.integer(0, 1));
  FERRY_TRY(stride, args.integer(1, 1));
  FERRY_TRY(padding, args.integer(2, 0));
  FERRY_TRY(dilation, args.integer(3, 1));
  FERRY_TRY(groups, args.integer(4, 1));
  FERRY_TRY(bias, args.boolean(5, true));
  maker.conv2d(module, args.c1, args.c2,
               {.kernel = {kernel, kernel},
                .stride = {stride, stride},
                .padding = Pair{padding, padding},
                .groups = groups,
                .dilation = dilation,
                .bias = bias});
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"Conv2d", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_conv2d;
const ModuleDef module_conv2d = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
