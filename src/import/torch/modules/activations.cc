// Activation modules of torch.nn and of YOLOv5's utils/activations.py: one op each.
#include <algorithm>
#include <array>

#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::Attrs;
using graph::ValueId;

struct Row {
  std::string_view class_name;
  std::string_view op;
  std::string_view alpha = {};  // the attribute that the op calls alpha
  double alpha_fallback = 0;
};

constexpr Row kRows[] = {
    {"SiLU", "silu"},
    {"Swish", "silu"},
    {"MemoryEfficientSwish", "silu"},
    {"Hardswish", "hardswish"},
    {"HardSwish", "hardswish"},
    {"LeakyReLU", "leaky_relu", "negative_slope", 0.01},
    {"ReLU", "relu"},
    {"ReLU6", "relu6"},
    {"Mish", "mish"},
    {"MemoryEfficientMish", "mish"},
    {"GELU", "gelu"},
    {"Sigmoid", "sigmoid"},
    {"Tanh", "tanh"},
    {"ELU", "elu", "alpha", 1.0},
};

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  const std::string_view name = short_name(module.class_name);
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& r) { return r.class_name == name; });
  FERRY_ASSERT(row != std::end(kRows), "every class of this row has an op");
  FERRY_TRY(approximate, module.string_attribute("approximate", "none"));
  if (approximate != "none")
    return error(Code::kUnsupported, "approximation '{}'; the exact form is known", approximate);
  Attrs attrs;
  if (!row->alpha.empty()) {
    FERRY_TRY(alpha, module.float_attribute(row->alpha, row->alpha_fallback));
    attrs["alpha"] = alpha;
  }
  return walker.op(row->op, module.path, {x}, std::move(attrs));
}

Status make(Maker& maker, Module& module, const MakeArgs& args) {
  if (args.name == "LeakyReLU" && args.has(0)) maker.set(module, "negative_slope", args.rest[0]);
  return maker.status();
}

constexpr auto kClasses = [] {
  std::array<ModuleClass, std::size(kRows)> classes;
  for (size_t i = 0; i < std::size(kRows); ++i) classes[i] = {kRows[i].class_name, Yaml::kSame};
  return classes;
}();

}  // namespace

extern const ModuleDef module_activations;
const ModuleDef module_activations = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
