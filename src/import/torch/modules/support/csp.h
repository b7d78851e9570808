// What the CSP blocks (C3 and BottleneckCSP) share.
#pragma once

#include <cstdint>
#include <span>

#include "import/torch/maker.h"
#include "import/torch/module.h"
#include "import/torch/walker.h"

namespace ferry::import::torch {

// int(c2 * e), as every block computes its hidden channels. Nonsense becomes 0, which no
// convolution accepts.
int64_t scaled_channels(int64_t channels, double expansion);

// cv4(act(bn(cat(cv3(m(cv1(x))), cv2(x)))))
Result<graph::ValueId> build_bottleneck_csp(Walker& walker, const Module& module,
                                            std::span<const graph::ValueId> inputs);

// Child `m`: args.n times Bottleneck, CrossConv (C3x) or GhostBottleneck (C3Ghost) of `hidden`
// channels.
Status make_sequence(Maker& maker, Module& module, const MakeArgs& args, int64_t hidden);

}  // namespace ferry::import::torch
