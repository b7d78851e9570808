// Bottleneck and CrossConv: two convolutions, and the input added when `add` says so.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"
#include "import/torch/modules/support/csp.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(hidden, walker.run_child(module, "cv1", x));
  FERRY_TRY(y, walker.run_child(module, "cv2", hidden));
  FERRY_TRY(shortcut, module.bool_attribute("add", false));
  if (!shortcut) return y;
  return walker.add(module.path + ".add", x, y);
}

// Bottleneck(c1, c2, shortcut=True, g=1, e=0.5); CrossConv(c1, c2, k=3, s=1, g=1, e=1.0,
// shortcut=False)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  if (args.name == "CrossConv") {
    FERRY_TRY(kernel, args.integer(0, 3));
    FERRY_TRY(stride, args.integer(1, 1));
    FERRY_TRY(groups, args.integer(2, 1));
    FERRY_TRY(expansion, args.number(3, 1.0));
    FERRY_TRY(shortcut, args.boolean(4, false));
    const int64_t hidden = scaled_channels(args.c2, expansion);
    maker.conv_block(module, "cv1", args.c1, hidden,
                     {.kernel = {1, kernel}, .stride = {1, stride}});
    maker.conv_block(module, "cv2", hidden, args.c2,
                     {.kernel = {kernel, 1}, .stride = {stride, 1}, .groups = groups});
    maker.set(module, "add", shortcut && args.c1 == args.c2);
    return maker.status();
  }
  FERRY_TRY(shortcut, args.boolean(0, true));
  FERRY_TRY(groups, args.integer(1, 1));
  FERRY_TRY(expansion, args.number(2, 0.5));
  const int64_t hidden = scaled_channels(args.c2, expansion);
  maker.conv_block(module, "cv1", args.c1, hidden);
  maker.conv_block(module, "cv2", hidden, args.c2, {.kernel = {3, 3}, .groups = groups});
  maker.set(module, "add", shortcut && args.c1 == args.c2);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"Bottleneck", Yaml::kScaled}, {"CrossConv", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_bottleneck;
const ModuleDef module_bottleneck = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
