// The loops of head_decode.cc and nms.cc that are worth vector instructions.
#pragma once

#include <cstdint>

#include "vision/boxes.h"
#include "vision/simd.h"

namespace ferry::vision {

// Sixteen kept boxes, one vector register a member; blocks of one class are chained. Lanes that are
// not used yet hold `kNowhere`, which meets no box.
struct KeptBlock {
  static constexpr int kLanes = 16;
  static constexpr Box kNowhere = {3e38f, 3e38f, -3e38f, -3e38f};
  alignas(64) float x1[kLanes], y1[kLanes], x2[kLanes], y2[kLanes], area[kLanes];
  int32_t next = -1;  // index of the chain's next block
};

struct BoxKernels {
  // Whether a box of the chain that begins at blocks[first] (-1: an empty chain) has an IoU above
  // `threshold` with `box`. The arithmetic of each pair is torchvision's, in fp32.
  bool (*any_overlap)(const KeptBlock* blocks, int32_t first, const Box& box, float threshold);
  // The greatest of n >= 1 values; NaN when one of them is NaN.
  float (*max_or_nan)(const float* values, int64_t n);
  // Writes the indices of the values above `threshold`, rising, to `out`; returns how many. `out`
  // has room for n + kLanes.
  int64_t (*select_above)(const float* values, int64_t n, float threshold, int32_t* out);
  // sigmoid (sigmoid.h) of n values; `out` may be `values`. The same bits at every level.
  void (*sigmoids)(const float* values, int64_t n, float* out);
};

// REQUIRES: `level` is supported here.
BoxKernels box_kernels(Simd level);

// Parts of the table above, by instruction set (box_kernels_x86.cc).
void use_avx2(BoxKernels& kernels);
void use_avx512(BoxKernels& kernels);

}  // namespace ferry::vision
