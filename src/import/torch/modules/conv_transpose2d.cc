// nn.ConvTranspose2d and YOLOv5's DWConvTranspose2d, which is one with as many groups as channels.
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

constexpr std::string_view kClasses[] = {"ConvTranspose2d", "DWConvTranspose2d"};

}  // namespace

extern const ModuleDef module_conv_transpose2d;
const ModuleDef module_conv_transpose2d = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
