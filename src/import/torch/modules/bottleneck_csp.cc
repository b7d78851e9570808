// BottleneckCSP, and the C3 of YOLOv5 v3 (models.experimental.C3), which has the same four
// convolutions: cv4(act(bn(cat(cv3(m(cv1(x))), cv2(x))))).
#include "import/torch/modules/support/csp.h"

#include "import/torch/module_def.h"

namespace ferry::import::torch {

namespace {
// BottleneckCSP(c1, c2, n=1, shortcut=True, g=1, e=0.5)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(expansion, args.number(2, 0.5));
  const int64_t hidden = scaled_channels(args.c2, expansion);
  maker.conv_block(module, "cv1", args.c1, hidden);
  maker.conv2d(module, "cv2", args.c1, hidden, {});
  maker.conv2d(module, "cv3", hidden, hidden, {});
  maker.conv_block(module, "cv4", 2 * hidden, args.c2);
  maker.batch_norm(maker.child(module, "bn", "torch.nn.modules.batchnorm.BatchNorm2d"), 2 * hidden);
  maker.csp_activation(module, "act");
  return make_sequence(maker, module, args, hidden);
}

constexpr ModuleClass kClasses[] = {{"BottleneckCSP", Yaml::kRepeated}};
}  // namespace

extern const ModuleDef module_bottleneck_csp;
const ModuleDef module_bottleneck_csp = {
    .classes = kClasses, .build = build_bottleneck_csp, .make = make};

}  // namespace ferry::import::torch
