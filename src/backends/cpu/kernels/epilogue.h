// What follows a convolution's sums: activation and residual, from a small buffer of sums to the
// output (internal). The elementwise kernels use the same functions.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv.h"

namespace ferry::cpu {

// A run of pixels of one output row (or of a whole picture, when the residual is not upsampled).
struct EpilogueRows {
  const float* sums = nullptr;  // [rows][sums_step]; may be the output itself
  int64_t sums_step = 0;
  float* output = nullptr;  // [rows][output_step]
  int64_t output_step = 0;
  const float* residual =
      nullptr;  // of the first pixel; upsampled: of the pixel that the first one reads
  int64_t residual_step = 0;
  int64_t rows = 0, cols = 0;
  int64_t x = 0;  // of the first pixel; its lowest bit matters to upsampled residuals
  Residual mode = Residual::kNone;
  Activation activation{};
};

using EpilogueFn = void (*)(const EpilogueRows&);

// The function for this activation and residual; EpilogueRows repeats both because the function
// needs their details.
EpilogueFn epilogue_fn(Isa, const Epilogue&);

}  // namespace ferry::cpu
