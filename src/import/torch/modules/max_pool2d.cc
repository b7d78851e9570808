// nn.MaxPool2d.
#include "import/torch/maker.h"
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

// nn.MaxPool2d(kernel_size, stride=kernel_size, padding=0)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(kernel, args.integer(0, 2));
  FERRY_TRY(stride, args.integer(1, kernel));
  FERRY_TRY(padding, args.integer(2, 0));
  maker.max_pool(module, kernel, stride, padding);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"MaxPool2d", Yaml::kSame}};

}  // namespace

extern const ModuleDef module_max_pool2d;
const ModuleDef module_max_pool2d = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
