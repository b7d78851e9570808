// Padding of convolution modules, as PyTorch states it.
#pragma once

#include "import/torch/module.h"

namespace ferry::import::torch {

// top, left, bottom, right for a kernel of kh x kw: `padding` is an integer, a pair (rows,
// columns), 'valid' or 'same'. Refuses padding modes other than zeros.
Result<graph::Shape> conv_pads(const Module& module, int64_t kh, int64_t kw,
                               const graph::Shape& dilations);

}  // namespace ferry::import::torch
