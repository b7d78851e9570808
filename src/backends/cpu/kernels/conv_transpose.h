// Transposed two-dimensional convolution (PyTorch's ConvTranspose2d), groups 1 or groups ==
// channels in and out.
//
//   output(n, y, x, o) = act( bias(o) + sum of input(n, iy, ix, i) * weight(i, o, ky, kx)
//                             over iy * stride_h - pad_top + ky * dilation_h == y, likewise x )
#pragma once

#include "backends/cpu/kernels/conv.h"

namespace ferry::cpu {

// Uses ConvProblem with `shape` describing the transposed operation: in_* is what is read, out_*
// what is written (out_h = (in_h - 1) * stride_h - 2 * pad + dilation_h * (kernel_h - 1) +
// output_padding + 1). No residual.
const char* refuse_conv_transpose(const ConvProblem&);

size_t conv_transpose_packed_bytes(const ConvProblem&);

// Weights are PyTorch's [in_c][out_c / groups][kernel_h][kernel_w] fp32; bias [out_c] or null.
void conv_transpose_pack(const ConvProblem&, const float* weights, const float* bias, void* packed);

// Needs input, packed and output of ConvArgs only.
void conv_transpose_run(const ConvProblem&, const ConvArgs&, ThreadPool&);

}  // namespace ferry::cpu
