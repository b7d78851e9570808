// letterbox_kernels.h for x86-64: AVX2, and AVX-512 with VBMI.
#include "vision/letterbox_kernels.h"

#if defined(FERRY_VISION_X86)

#include <immintrin.h>

#include <algorithm>

// GCC 12 takes the undefined operand inside its own AVX-512 intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

// x / 255 without a division: q = x * r is at most one step off, and adding r times the exact
// remainder x - 255 q rounds it correctly (letterbox_test.cc tries all 256).

namespace ferry::vision {

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {

// Two pixels a register, a 128-bit lane each: eight bytes hold both taps of three channels.
// `spread` makes them (first, second) pairs of 16 bits, which are multiplied with the pixel's (a,
// b).
inline __m256i pixel_pair(const RowPlan& plan, const uint8_t* row, int64_t x, int64_t y,
                          __m256i spread) {
  const auto* weights = reinterpret_cast<const int32_t*>(plan.weights.data());
  const __m128i p = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + plan.offset0[x]));
  const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + plan.offset0[y]));
  const __m256i taps =
      _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(p), q, 1), spread);
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_set1_epi32(weights[x])),
                                               _mm_set1_epi32(weights[y]), 1);
  return _mm256_srli_epi32(_mm256_madd_epi16(taps, both), 4);
}

void across(const RowPlan& plan, const uint8_t* row, int16_t* out) {
  // Pixels whose eight bytes lie inside the row; the others are done one by one.
  const int32_t last_load = static_cast<int32_t>(plan.row_bytes) - 8;
  const int64_t safe =
      std::upper_bound(plan.offset0.begin(), plan.offset0.end(), last_load) - plan.offset0.begin();
  const __m128i red_first = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
  const __m128i blue_first =
      _mm_setr_epi8(2, -1, 5, -1, 1, -1, 4, -1, 0, -1, 3, -1, -1, -1, -1, -1);
  const __m256i spread = _mm256_broadcastsi128_si256(plan.swap ? blue_first : red_first);
  // Drops the fourth 16-bit value of each pixel.
  const __m256i compact = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1));
  int64_t x = 0;
  for (; x + 4 <= safe; x += 4) {
    const __m256i even = pixel_pair(plan, row, x, x + 2, spread);
    const __m256i odd = pixel_pair(plan, row, x + 1, x + 3, spread);
    const __m256i samples = _mm256_shuffle_epi8(_mm256_packs_epi32(even, odd), compact);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * x), _mm256_castsi256_si128(samples));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * x + 6),
                     _mm256_extracti128_si256(samples, 1));
  }
  across_from(x, plan, row, out);
}

// Sixteen finished samples, 16 bits each.
inline __m256i blend(const int16_t* row0, const int16_t* row1, __m256i weight0, __m256i weight1) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row0));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row1));
  const __m256i sum =
      _mm256_add_epi16(_mm256_mulhi_epi16(a, weight0), _mm256_mulhi_epi16(b, weight1));
  return _mm256_srli_epi16(_mm256_add_epi16(sum, _mm256_set1_epi16(2)), 2);
}

void down(const int16_t* row0, const int16_t* row1, int weight0, int weight1, int64_t n,
          uint8_t* out) {
  const __m256i w0 = _mm256_set1_epi16(static_cast<int16_t>(weight0));
  const __m256i w1 = _mm256_set1_epi16(static_cast<int16_t>(weight1));
  for (int64_t i = 0; i < n; i += 32) {
    const __m256i packed = _mm256_packus_epi16(blend(row0 + i, row1 + i, w0, w1),
                                               blend(row0 + i + 16, row1 + i + 16, w0, w1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_permute4x64_epi64(packed, 0b11011000));
  }
}

void swap(const uint8_t* row, int64_t pixels, uint8_t* out) {
  const __m128i order = _mm_setr_epi8(2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9, 14, 13, 12, 15);
  int64_t x = 0;
  for (; 3 * x + 16 <= 3 * pixels; x += 5) {
    const __m128i in = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 3 * x));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * x), _mm_shuffle_epi8(in, order));
  }
  for (; x < pixels; ++x) {
    out[3 * x] = row[3 * x + 2];
    out[3 * x + 1] = row[3 * x + 1];
    out[3 * x + 2] = row[3 * x];
  }
}

void to_float(const uint8_t* row, int64_t n, float* out) {
  const __m256 r = _mm256_set1_ps(1.0f / 255.0f);
  const __m256 d = _mm256_set1_ps(255.0f);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + i));
    const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    const __m256 q = _mm256_mul_ps(x, r);
    _mm256_storeu_ps(out + i, _mm256_fmadd_ps(_mm256_fnmadd_ps(q, d, x), r, q));
  }
  for (; i < n; ++i) out[i] = static_cast<float>(row[i]) / 255.0f;
}

// Sixteen pixels in three registers; each plane takes its bytes from all three.
void planes(const uint8_t* row, int64_t pixels, uint8_t* red, uint8_t* green, uint8_t* blue) {
  alignas(16) int8_t pick[3][3][16];  // [plane][register][byte]: position in the register, or -1
  for (int plane = 0; plane < 3; ++plane) {
    for (int part = 0; part < 3; ++part) {
      for (int i = 0; i < 16; ++i) {
        const int from = 3 * i + plane - 16 * part;
        pick[plane][part][i] = static_cast<int8_t>(from >= 0 && from < 16 ? from : -1);
      }
    }
  }
  uint8_t* outputs[3] = {red, green, blue};
  int64_t x = 0;
  for (; x + 16 <= pixels; x += 16) {
    const __m128i* in = reinterpret_cast<const __m128i*>(row + 3 * x);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    for (int plane = 0; plane < 3; ++plane) {
      const __m128i* p = reinterpret_cast<const __m128i*>(pick[plane]);
      const __m128i from_ab = _mm_or_si128(_mm_shuffle_epi8(a, _mm_load_si128(p)),
                                           _mm_shuffle_epi8(b, _mm_load_si128(p + 1)));
      const __m128i all = _mm_or_si128(from_ab, _mm_shuffle_epi8(c, _mm_load_si128(p + 2)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(outputs[plane] + x), all);
    }
  }
  for (; x < pixels; ++x) {
    for (int plane = 0; plane < 3; ++plane) outputs[plane][x] = row[3 * x + plane];
  }
}

}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma")
namespace avx512 {

constexpr __mmask64 kEven = 0x5555555555555555;  // odd bytes become the high halves: 0

void across(const RowPlan& plan, const uint8_t* row, int16_t* out) {
  if (plan.group_loads == 0) return avx2::across(plan, row, out);
  const int64_t groups = static_cast<int64_t>(plan.group_base.size());
  const int64_t bytes = plan.row_bytes;
  const __mmask64 first = bytes >= 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t base = plan.group_base[g];
    const __m512i order = _mm512_load_si512(&plan.group_bytes[g * 64]);
    const __m512i weights = _mm512_load_si512(&plan.group_weights[g * 32]);
    const __m512i low = _mm512_maskz_loadu_epi8(first, row + base);
    __m512i taps;
    if (plan.group_loads == 1) {
      taps = _mm512_maskz_permutexvar_epi8(kEven, order, low);
    } else {
      const int64_t rest = bytes - base - 64;
      const __mmask64 second = rest >= 64  ? ~__mmask64{0}
                               : rest <= 0 ? 0
                                           : (__mmask64{1} << rest) - 1;
      const __m512i high = _mm512_maskz_loadu_epi8(second, row + base + 64);
      taps = _mm512_maskz_permutex2var_epi8(kEven, low, order, high);
    }
    const __m512i sum = _mm512_srli_epi32(_mm512_madd_epi16(taps, weights), 4);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + g * 16), _mm512_cvtepi32_epi16(sum));
  }
}

void down(const int16_t* row0, const int16_t* row1, int weight0, int weight1, int64_t n,
          uint8_t* out) {
  const __m512i w0 = _mm512_set1_epi16(static_cast<int16_t>(weight0));
  const __m512i w1 = _mm512_set1_epi16(static_cast<int16_t>(weight1));
  const __m512i two = _mm512_set1_epi16(2);
  for (int64_t i = 0; i < n; i += 32) {
    const __m512i a = _mm512_loadu_si512(row0 + i);
    const __m512i b = _mm512_loadu_si512(row1 + i);
    const __m512i sum = _mm512_add_epi16(_mm512_mulhi_epi16(a, w0), _mm512_mulhi_epi16(b, w1));
    const __m512i pixel = _mm512_srli_epi16(_mm512_add_epi16(sum, two), 2);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtepi16_epi8(pixel));
  }
}

void to_float(const uint8_t* row, int64_t n, float* out) {
  const __m512 r = _mm512_set1_ps(1.0f / 255.0f);
  const __m512 d = _mm512_set1_ps(255.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = n - i >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n - i)) - 1);
    const __m128i bytes = _mm_maskz_loadu_epi8(mask, row + i);
    const __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
    const __m512 q = _mm512_mul_ps(x, r);
    _mm512_mask_storeu_ps(out + i, mask, _mm512_fmadd_ps(_mm512_fnmadd_ps(q, d, x), r, q));
  }
}

}  // namespace avx512
#pragma GCC pop_options

void use_avx2(RowKernels& kernels) {
  kernels = {avx2::across, avx2::down, avx2::swap, avx2::to_float, avx2::planes};
}

void use_avx512vbmi(RowKernels& kernels) {
  kernels.across = avx512::across;
  kernels.down = avx512::down;
  kernels.to_float = avx512::to_float;
}

}  // namespace ferry::vision

#endif  // defined(FERRY_VISION_X86)
