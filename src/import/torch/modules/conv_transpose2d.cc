// nn.ConvTranspose2d and YOLOv5's DWConvTranspose2d, which is one with as many groups as channels.
#include <numeric>

#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(weight, walker.constant(module, "weight"));
  FERRY_TRY(bias, walker.optional_constant(module, "bias"));
  FERRY_TRY(strides, module.ints_attribute("stride", 2, {1, 1}));
  FERRY_TRY(dilations, module.ints_attribute("dilation", 2, {1, 1}));
  FERRY_TRY(padding, module.ints_attribute("padding", 2, {0, 0}));
  FERRY_TRY(output_padding, module.ints_attribute("output_padding", 2, {0, 0}));
  FERRY_TRY(groups, module.int_attribute("groups", 1));
  const graph::Ints pads = {padding[0], padding[1], padding[0], padding[1]};
  return walker.op("conv_transpose2d", module.path, {x, weight, bias},
                   {{"strides", strides},
                    {"pads", pads},
                    {"dilations", dilations},
                    {"output_padding", output_padding},
                    {"groups", groups}});
}

// nn.ConvTranspose2d(c1, c2, kernel, stride, padding, output_padding, groups, bias, dilation), or
// DWConvTranspose2d(c1, c2, kernel, stride, padding, output_padding)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  const bool is_depthwise = args.name == "DWConvTranspose2d";
  FERRY_TRY(kernel, args.integer(0, 1));
  FERRY_TRY(stride, args.integer(1, 1));
  FERRY_TRY(padding, args.integer(2, 0));
  FERRY_TRY(output_padding, args.integer(3, 0));
  FERRY_TRY(given_groups, args.integer(4, 1));
  FERRY_TRY(bias, args.boolean(5, true));
  FERRY_TRY(dilation, args.integer(6, 1));
  const int64_t groups = is_depthwise ? std::gcd(args.c1, args.c2) : given_groups;
  if (groups < 1 || args.c1 % groups != 0 || args.c2 % groups != 0) {
    return error(Code::kInvalid, "{}: {} groups for {} and {} channels", module.where(), groups,
                 args.c1, args.c2);
  }
  maker.set(module, "stride", stride);
  maker.set(module, "padding", padding);
  maker.set(module, "output_padding", output_padding);
  maker.set(module, "dilation", dilation);
  maker.set(module, "groups", groups);
  maker.tensor(module, "weight", {args.c1, args.c2 / groups, kernel, kernel});
  if (bias) maker.tensor(module, "bias", {args.c2});
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"ConvTranspose2d", Yaml::kScaled},
                                    {"DWConvTranspose2d", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_conv_transpose2d;
const ModuleDef module_conv_transpose2d = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
