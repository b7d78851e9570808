// Sum: adds the outputs of several layers; all but the first may have a weight, 2 * sigmoid(w[i]).
#include <cmath>

#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::Tensor;
using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  if (inputs.empty()) return error(Code::kInvalid, "has no inputs");
  FERRY_TRY(weights, walker.attribute_tensor(module, "w"));
  if (weights && weights->size() + 1 < std::ssize(inputs)) {
    return error(Code::kInvalid, "has {} weights for {} inputs", weights->size(), inputs.size());
  }
  ValueId sum = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    ValueId part = inputs[i];
    const std::string step = fmt::format("{}.{}", module.path, i);
    if (weights) {
      const float factor = 2.0f / (1.0f + std::exp(-weights->as<float>()[i - 1]));
      const ValueId scale = walker.constant(step + ".weight", Tensor::of<float>({1}, {factor}));
      FERRY_TRY(scaled, walker.op("mul", step + ".mul", {part, scale}));
      part = scaled;
    }
    FERRY_TRY(next, walker.add(step + ".add", sum, part));
    sum = next;
  }
  return sum;
}

// Sum(n, weight=False)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(count, args.integer(0, 2));
  FERRY_TRY(weighted, args.boolean(1, false));
  if (weighted) maker.tensor(module, "w", {count - 1});
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"Sum", Yaml::kSame}};

}  // namespace

extern const ModuleDef module_sum;
const ModuleDef module_sum = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
