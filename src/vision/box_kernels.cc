// The plain loops of box_kernels.h, and the choice among instruction sets.
#include "vision/box_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vision/sigmoid.h"

namespace ferry::vision {
namespace {

bool any_overlap_portable(const KeptBlock* blocks, int32_t first, const Box& box, float threshold) {
  const float area = (box.x2 - box.x1) * (box.y2 - box.y1);
  for (int32_t index = first; index >= 0; index = blocks[index].next) {
    const KeptBlock& kept = blocks[index];
    bool found = false;
    for (int i = 0; i < KeptBlock::kLanes; ++i) {
      const float w = std::min(kept.x2[i], box.x2) - std::max(kept.x1[i], box.x1);
      const float h = std::min(kept.y2[i], box.y2) - std::max(kept.y1[i], box.y1);
      const float intersection = std::max(0.0f, w) * std::max(0.0f, h);
      found |= intersection > 0 && intersection / (kept.area[i] + area - intersection) > threshold;
    }
    if (found) return true;
  }
  return false;
}

float max_or_nan_portable(const float* values, int64_t n) {
  float best = values[0];
  bool nan = false;
  for (int64_t i = 0; i < n; ++i) {
    nan |= std::isnan(values[i]);
    best = values[i] > best ? values[i] : best;
  }
  return nan ? std::numeric_limits<float>::quiet_NaN() : best;
}

int64_t select_above_portable(const float* values, int64_t n, float threshold, int32_t* out) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    out[count] = static_cast<int32_t>(i);
    count += values[i] > threshold;
  }
  return count;
}

void sigmoids_portable(const float* values, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = sigmoid(values[i]);
}

}  // namespace

BoxKernels box_kernels(Simd level) {
  BoxKernels kernels = {any_overlap_portable, max_or_nan_portable, select_above_portable,
                        sigmoids_portable};
#if defined(FERRY_VISION_X86)
  if (level >= Simd::kAvx2) use_avx2(kernels);
  if (level >= Simd::kAvx512) use_avx512(kernels);
#else
  (void)level;
#endif
  return kernels;
}

}  // namespace ferry::vision
