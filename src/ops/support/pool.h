// What the pools share: the kernel attribute, the window over an input, and the checks on it.
#pragma once

#include "ops/support/check.h"
#include "ops/support/window.h"

namespace ferry::ops {

// f32[N,C,H,W]; kernel, strides, pads and dilations as attributes. Padding must be smaller than the
// window.
Result<Window> pool_window(const graph::Node& node);
Result<Types> infer_pool(const graph::InferArgs& args);

// kernel, strides, pads, dilations, ceil_mode of an ONNX pool.
Result<graph::Converted> pool_from_onnx(const graph::ForeignNode& node);

}  // namespace ferry::ops
