// Two classes share the four-convolution CSP block.
#pragma once

#include <span>

#include "import/torch/module.h"
#include "import/torch/walker.h"

namespace ferry::import::torch {

Result<graph::ValueId> build_bottleneck_csp(Walker& walker, const Module& module,
                                            std::span<const graph::ValueId> inputs);

}  // namespace ferry::import::torch
