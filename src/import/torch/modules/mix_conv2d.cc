// MixConv2d: convolutions of several kernel sizes side by side, joined, normalised, activated.
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  const Module* convs = module.child("m");
  if (convs == nullptr) return error(Code::kInvalid, "has no 'm'");
  std::vector<ValueId> parts;
  for (const auto& [name, conv] : convs->children) {
    FERRY_TRY(part, walker.run(*conv, x));
    parts.push_back(part);
  }
  FERRY_TRY(joined, walker.concat(module.path + ".cat", std::move(parts)));
  FERRY_TRY(normal, walker.run_child(module, "bn", joined));
  FERRY_TRY(y, walker.run_child(module, "act", normal));
  // Releases before v6.1 added the input; nothing in a checkpoint says so but the activation of
  // that time.
  const Module* act = module.child("act");
  const bool is_residual = act != nullptr && short_name(act->class_name) == "LeakyReLU";
  return is_residual ? walker.add(module.path + ".add", x, y) : Result<ValueId>(y);
}

constexpr std::string_view kClasses[] = {"MixConv2d"};

}  // namespace

extern const ModuleDef module_mix_conv2d;
const ModuleDef module_mix_conv2d = {.classes = kClasses, .build = build};

}  // namespace ferry::import::torch
