#include "import/torch/modules/support/csp.h"

#include <fmt/format.h>

namespace ferry::import::torch {

using graph::ValueId;

int64_t scaled_channels(int64_t channels, double expansion) {
  const double scaled = static_cast<double>(channels) * expansion;
  return scaled >= 1 && scaled < 1e9 ? static_cast<int64_t>(scaled) : 0;
}

Result<ValueId> build_bottleneck_csp(Walker& walker, const Module& module,
                                     std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  FERRY_TRY(hidden, walker.run_child(module, "cv1", x));
  FERRY_TRY(deep, walker.run_child(module, "m", hidden));
  FERRY_TRY(y1, walker.run_child(module, "cv3", deep));
  FERRY_TRY(y2, walker.run_child(module, "cv2", x));
  FERRY_TRY(joined, walker.concat(module.path + ".cat", {y1, y2}));
  FERRY_TRY(normal, walker.run_child(module, "bn", joined));
  FERRY_TRY(active, walker.run_child(module, "act", normal));
  return walker.run_child(module, "cv4", active);
}

Status make_sequence(Maker& maker, Module& module, const MakeArgs& args, int64_t hidden) {
  FERRY_TRY(shortcut, args.boolean(0, true));
  FERRY_TRY(groups, args.integer(1, 1));
  Module& sequence = maker.child(module, "m", "torch.nn.modules.container.Sequential");
  for (int64_t i = 0; i < args.n && maker.status().ok(); ++i) {
    const std::string name = fmt::format("{}", i);
    if (args.name == "C3Ghost") {
      FERRY_CHECK_OK(maker.child_of(sequence, name, "models.common.GhostBottleneck",
                                    {.c1 = hidden, .c2 = hidden}));
      continue;
    }
    const bool is_cross = args.name == "C3x";
    Module& block = maker.child(sequence, name,
                                is_cross ? "models.common.CrossConv" : "models.common.Bottleneck");
    maker.conv_block(block, "cv1", hidden, hidden, {.kernel = {1, is_cross ? 3 : 1}});
    maker.conv_block(block, "cv2", hidden, hidden,
                     {.kernel = {3, is_cross ? 1 : 3}, .groups = groups});
    maker.set(block, "add", shortcut);
  }
  return maker.status();
}

}  // namespace ferry::import::torch
