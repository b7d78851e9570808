// nn.MaxPool2d.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::Ints;
using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(kernel, module.ints_attribute("kernel_size", 2, {0, 0}));
  FERRY_TRY(strides, module.ints_attribute("stride", 2, kernel));
  FERRY_TRY(padding, module.ints_attribute("padding", 2, {0, 0}));
  FERRY_TRY(dilations, module.ints_attribute("dilation", 2, {1, 1}));
  FERRY_TRY(ceil, module.bool_attribute("ceil_mode", false));
  return walker.op("max_pool2d", module.path, {x},
                   {{"kernel", kernel},
                    {"strides", strides},
                    {"pads", Ints{padding[0], padding[1], padding[0], padding[1]}},
                    {"dilations", dilations},
                    {"ceil_mode", int64_t{ceil}}});
}

constexpr std::string_view kClasses[] = {"MaxPool2d"};

}  // namespace

extern const ModuleDef module_max_pool2d;
const ModuleDef module_max_pool2d = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
