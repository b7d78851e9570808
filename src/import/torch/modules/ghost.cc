// GhostConv: half of the channels by a convolution, the other half by a cheap one of those.
// GhostBottleneck: conv(x) + shortcut(x).
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  if (short_name(module.class_name) == "GhostConv") {
    FERRY_TRY(y, walker.run_child(module, "cv1", x));
    FERRY_TRY(ghost, walker.run_child(module, "cv2", y));
    return walker.concat(module.path + ".cat", {y, ghost});
  }
  FERRY_TRY(y, walker.run_child(module, "conv", x));
  FERRY_TRY(shortcut, walker.run_child(module, "shortcut", x));
  return walker.add(module.path + ".add", y, shortcut);
}

// GhostConv(c1, c2, k=1, s=1, g=1, act=True)
Status make_conv(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(kernel, args.integer(0, 1));
  FERRY_TRY(stride, args.integer(1, 1));
  FERRY_TRY(groups, args.integer(2, 1));
  FERRY_TRY(act, args.boolean(3, true));
  const int64_t half = args.c2 / 2;
  maker.conv_block(
      module, "cv1", args.c1, half,
      {.kernel = {kernel, kernel}, .stride = {stride, stride}, .groups = groups, .act = act});
  maker.conv_block(module, "cv2", half, half, {.kernel = {5, 5}, .groups = half, .act = act});
  return maker.status();
}

// GhostBottleneck(c1, c2, k=3, s=1)
Status make_bottleneck(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(kernel, args.integer(0, 3));
  FERRY_TRY(stride, args.integer(1, 1));
  const int64_t half = args.c2 / 2;
  const ConvSpec depthwise = {.kernel = {kernel, kernel}, .stride = {stride, stride}, .act = false};
  Module& conv = maker.child(module, "conv", "torch.nn.modules.container.Sequential");
  FERRY_CHECK_OK(maker.child_of(conv, "0", "models.common.GhostConv", {.c1 = args.c1, .c2 = half}));
  if (stride == 2) {
    ConvSpec spec = depthwise;
    spec.groups = half;
    maker.conv_block(maker.child(conv, "1", "models.common.DWConv"), half, half, spec);
  } else {
    maker.child(conv, "1", "torch.nn.modules.linear.Identity");
  }
  Module& last = maker.child(conv, "2", "models.common.GhostConv");
  const int64_t last_half = args.c2 / 2;
  maker.conv_block(last, "cv1", half, last_half, {.act = false});
  maker.conv_block(last, "cv2", last_half, last_half,
                   {.kernel = {5, 5}, .groups = last_half, .act = false});
  if (stride != 2) {
    maker.child(module, "shortcut", "torch.nn.modules.linear.Identity");
    return maker.status();
  }
  Module& shortcut = maker.child(module, "shortcut", "torch.nn.modules.container.Sequential");
  ConvSpec spec = depthwise;
  spec.groups = args.c1;
  maker.conv_block(maker.child(shortcut, "0", "models.common.DWConv"), args.c1, args.c1, spec);
  maker.conv_block(shortcut, "1", args.c1, args.c2, {.act = false});
  return maker.status();
}

Status make(Maker& maker, Module& module, const MakeArgs& args) {
  return args.name == "GhostConv" ? make_conv(maker, module, args)
                                  : make_bottleneck(maker, module, args);
}

constexpr ModuleClass kClasses[] = {{"GhostConv", Yaml::kScaled},
                                    {"GhostBottleneck", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_ghost;
const ModuleDef module_ghost = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch
