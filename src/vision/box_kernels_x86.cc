// box_kernels.h for x86-64: AVX2 and AVX-512.
#include "vision/box_kernels.h"

#if defined(FERRY_VISION_X86)

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "vision/sigmoid.h"

// GCC 12 takes the undefined operand inside its own AVX-512 intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

// In any_overlap the division, which is most of the cost, is only done for the few blocks in which
// a box meets ours at all. Products and sums must not be fused: upstream's are not (the folder is
// compiled with -ffp-contract=off).

namespace ferry::vision {

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {

bool any_overlap(const KeptBlock* blocks, int32_t first, const Box& box, float threshold) {
  const __m256 x1 = _mm256_set1_ps(box.x1), y1 = _mm256_set1_ps(box.y1);
  const __m256 x2 = _mm256_set1_ps(box.x2), y2 = _mm256_set1_ps(box.y2);
  const __m256 area = _mm256_set1_ps((box.x2 - box.x1) * (box.y2 - box.y1));
  const __m256 limit = _mm256_set1_ps(threshold);
  const __m256 zero = _mm256_setzero_ps();
  for (int32_t index = first; index >= 0; index = blocks[index].next) {
    const KeptBlock& kept = blocks[index];
    for (int i = 0; i < KeptBlock::kLanes; i += 8) {
      const __m256 w = _mm256_sub_ps(_mm256_min_ps(_mm256_load_ps(kept.x2 + i), x2),
                                     _mm256_max_ps(_mm256_load_ps(kept.x1 + i), x1));
      const __m256 h = _mm256_sub_ps(_mm256_min_ps(_mm256_load_ps(kept.y2 + i), y2),
                                     _mm256_max_ps(_mm256_load_ps(kept.y1 + i), y1));
      const __m256 intersection = _mm256_mul_ps(_mm256_max_ps(w, zero), _mm256_max_ps(h, zero));
      const __m256 meets = _mm256_cmp_ps(intersection, zero, _CMP_GT_OQ);
      if (_mm256_movemask_ps(meets) == 0) continue;
      const __m256 both = _mm256_add_ps(_mm256_load_ps(kept.area + i), area);
      const __m256 iou = _mm256_div_ps(intersection, _mm256_sub_ps(both, intersection));
      const __m256 above = _mm256_cmp_ps(iou, limit, _CMP_GT_OQ);
      if (_mm256_movemask_ps(_mm256_and_ps(above, meets)) != 0) return true;
    }
  }
  return false;
}

float max_or_nan(const float* values, int64_t n) {
  __m256 best = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  __m256 nan = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 v = _mm256_loadu_ps(values + i);
    best = _mm256_max_ps(best, v);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  }
  bool any_nan = _mm256_movemask_ps(nan) != 0;
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, best);
  float result = *std::max_element(lanes, lanes + 8);
  for (; i < n; ++i) {
    any_nan |= std::isnan(values[i]);
    result = std::max(result, values[i]);
  }
  return any_nan ? std::numeric_limits<float>::quiet_NaN() : result;
}

int64_t select_above(const float* values, int64_t n, float threshold, int32_t* out) {
  const __m256 limit = _mm256_set1_ps(threshold);
  int64_t count = 0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 above = _mm256_cmp_ps(_mm256_loadu_ps(values + i), limit, _CMP_GT_OQ);
    unsigned mask = static_cast<unsigned>(_mm256_movemask_ps(above));
    for (; mask != 0; mask &= mask - 1) {
      out[count++] = static_cast<int32_t>(i) + std::countr_zero(mask);
    }
  }
  for (; i < n; ++i) {
    if (values[i] > threshold) out[count++] = static_cast<int32_t>(i);
  }
  return count;
}

void sigmoids(const float* values, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = sigmoid(values[i]);
}

}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
namespace avx512 {

bool any_overlap(const KeptBlock* blocks, int32_t first, const Box& box, float threshold) {
  const __m512 x1 = _mm512_set1_ps(box.x1), y1 = _mm512_set1_ps(box.y1);
  const __m512 x2 = _mm512_set1_ps(box.x2), y2 = _mm512_set1_ps(box.y2);
  const __m512 area = _mm512_set1_ps((box.x2 - box.x1) * (box.y2 - box.y1));
  const __m512 limit = _mm512_set1_ps(threshold);
  const __m512 zero = _mm512_setzero_ps();
  for (int32_t index = first; index >= 0; index = blocks[index].next) {
    const KeptBlock& kept = blocks[index];
    const __m512 w = _mm512_sub_ps(_mm512_min_ps(_mm512_load_ps(kept.x2), x2),
                                   _mm512_max_ps(_mm512_load_ps(kept.x1), x1));
    const __m512 h = _mm512_sub_ps(_mm512_min_ps(_mm512_load_ps(kept.y2), y2),
                                   _mm512_max_ps(_mm512_load_ps(kept.y1), y1));
    const __m512 intersection = _mm512_mul_ps(_mm512_max_ps(w, zero), _mm512_max_ps(h, zero));
    const __mmask16 meets = _mm512_cmp_ps_mask(intersection, zero, _CMP_GT_OQ);
    if (meets == 0) continue;
    const __m512 both = _mm512_add_ps(_mm512_load_ps(kept.area), area);
    const __m512 iou = _mm512_div_ps(intersection, _mm512_sub_ps(both, intersection));
    if (_mm512_mask_cmp_ps_mask(meets, iou, limit, _CMP_GT_OQ) != 0) return true;
  }
  return false;
}

inline __mmask16 tail(int64_t left) {
  return left >= 16 ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
}

float max_or_nan(const float* values, int64_t n) {
  const __m512 lowest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 best = lowest;
  __mmask16 nan = 0;
  for (int64_t i = 0; i < n; i += 16) {
    const __m512 v = _mm512_mask_loadu_ps(lowest, tail(n - i), values + i);
    best = _mm512_max_ps(best, v);
    nan |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  }
  return nan ? std::numeric_limits<float>::quiet_NaN() : _mm512_reduce_max_ps(best);
}

int64_t select_above(const float* values, int64_t n, float threshold, int32_t* out) {
  const __m512 limit = _mm512_set1_ps(threshold);
  __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = tail(n - i);
    const __m512 v = _mm512_maskz_loadu_ps(lanes, values + i);
    const __mmask16 above = _mm512_mask_cmp_ps_mask(lanes, v, limit, _CMP_GT_OQ);
    // Packed in a register, then stored whole: a packing store is slow on some processors.
    _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi32(above, index));
    count += std::popcount(static_cast<unsigned>(above));
    index = _mm512_add_epi32(index, _mm512_set1_epi32(16));
  }
  return count;
}

void sigmoids(const float* values, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = sigmoid(values[i]);
}

}  // namespace avx512
#pragma GCC pop_options

void use_avx2(BoxKernels& kernels) {
  kernels = {avx2::any_overlap, avx2::max_or_nan, avx2::select_above, avx2::sigmoids};
}

void use_avx512(BoxKernels& kernels) {
  kernels = {avx512::any_overlap, avx512::max_or_nan, avx512::select_above, avx512::sigmoids};
}

}  // namespace ferry::vision

#endif  // defined(FERRY_VISION_X86)
