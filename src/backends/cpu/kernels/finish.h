// What follows a convolution's sums where an operand is not fp32: scale and bias of integer sums,
// activation, residual, and the output's storage (internal). The fp32 path is epilogue.h. With no
// convolution before it, it converts pictures and adds them.
#pragma once

#include "backends/cpu/kernels/conv.h"

namespace ferry::cpu {

// A run of pixels of one output row (or of a whole picture, when the residual is not upsampled).
// Steps go from a pixel to the next, in bytes. `output` may be the residual or the source itself,
// where their elements have one size.
struct FinishRows {
  const std::byte* source = nullptr;  // [rows][cols]
  int64_t source_step = 0;
  Storage source_storage{};
  // (optional) The source holds int32 sums: value = sum * multiplier[c] + bias[c].
  const float* multiplier = nullptr;  // [cols]
  const float* bias = nullptr;        // [cols]
  std::byte* output = nullptr;
  int64_t output_step = 0;
  Storage output_storage{};
  const std::byte* residual = nullptr;  // of the first pixel; upsampled: of the one that it reads
  int64_t residual_step = 0;
  Storage residual_storage{};
  int64_t rows = 0, cols = 0;
  int64_t x = 0;  // of the first pixel; its lowest bit matters to upsampled residuals
  Residual mode = Residual::kNone;
  Activation activation{};
};

using FinishFn = void (*)(const FinishRows&);

// The function for this activation and residual; FinishRows repeats both because the function needs
// their details.
FinishFn finish_fn(Isa, const Epilogue&);

}  // namespace ferry::cpu
