// C3 and its family: cv3(cat(m(cv1(x)), cv2(x))), where `m` is a sequence of Bottleneck (C3),
// CrossConv (C3x) or GhostBottleneck (C3Ghost), a TransformerBlock (C3TR) or an SPP (C3SPP).
#include "import/torch/module_def.h"
#include "import/torch/modules/support/csp.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  if (module.child("cv4") != nullptr)
    return build_bottleneck_csp(walker, module, inputs);  // v3's C3
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(hidden, walker.run_child(module, "cv1", x));
  FERRY_TRY(deep, walker.run_child(module, "m", hidden));
  FERRY_TRY(side, walker.run_child(module, "cv2", x));
  FERRY_TRY(joined, walker.concat(module.path + ".cat", {deep, side}));
  return walker.run_child(module, "cv3", joined);
}

// The family's constructors are (c1, c2, n=1, shortcut=True, g=1, e=0.5); C3SPP has its kernels
// before n.
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  const size_t first = args.name == "C3SPP" ? 2 : 0;
  FERRY_TRY(expansion, args.number(first + 2, 0.5));
  const int64_t hidden = scaled_channels(args.c2, expansion);
  maker.conv_block(module, "cv1", args.c1, hidden);
  maker.conv_block(module, "cv2", args.c1, hidden);
  maker.conv_block(module, "cv3", 2 * hidden, args.c2);
  if (args.name == "C3SPP") {
    return maker.child_of(module, "m", "models.common.SPP",
                          {.c1 = hidden,
                           .c2 = hidden,
                           .rest = args.rest.first(std::min<size_t>(args.rest.size(), 1))});
  }
  if (args.name == "C3TR") {
    return maker.child_of(module, "m", "models.common.TransformerBlock",
                          {.c1 = hidden, .c2 = hidden, .n = args.n});
  }
  return make_sequence(maker, module, args, hidden);
}

constexpr ModuleClass kClasses[] = {
    {"C3", Yaml::kRepeated},      {"C3x", Yaml::kRepeated}, {"C3TR", Yaml::kRepeated},
    {"C3Ghost", Yaml::kRepeated}, {"C3SPP", Yaml::kScaled},
};

}  // namespace

extern const ModuleDef module_c3;
const ModuleDef module_c3 = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
