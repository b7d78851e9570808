// Vectors of floats from and to narrower elements, in the namespaces of vec.h:
//
//   load_u8(p) load_bf16(p) load_s32(p)   kLanes elements as floats
//   store_u8(p, v)                        v from 0 to 255, rounded to nearest even
//   store_bf16(p, v)                      rounded to nearest even
#pragma once

#include "backends/cpu/kernels/vec.h"

namespace ferry::cpu::portable {

FERRY_INLINE Vec load_u8(const void* p) {
  uint8_t v[4];
  std::memcpy(v, p, sizeof v);
  return {Floats{static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2]),
                 static_cast<float>(v[3])}};
}
FERRY_INLINE Vec load_bf16(const void* p) {
  uint16_t v[4];
  std::memcpy(v, p, sizeof v);
  return {(Floats)(Ints{v[0], v[1], v[2], v[3]} << 16)};
}
FERRY_INLINE Vec load_s32(const void* p) {
  Ints v;
  std::memcpy(&v, p, sizeof v);
  return {__builtin_convertvector(v, Floats)};
}
FERRY_INLINE void store_u8(void* p, Vec a) {
  const Ints bits = (Ints)(a.v + kRoundBias);  // the integer stands in the low bits
  const uint8_t v[4] = {static_cast<uint8_t>(bits[0]), static_cast<uint8_t>(bits[1]),
                        static_cast<uint8_t>(bits[2]), static_cast<uint8_t>(bits[3])};
  std::memcpy(p, v, sizeof v);
}
FERRY_INLINE void store_bf16(void* p, Vec a) {
  typedef uint32_t Words __attribute__((vector_size(16)));
  const Words bits = (Words)a.v;
  const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Words quiet = (bits >> 16) | 0x40;  // NaN
  const Words chosen = (Words)(a.v == a.v) ? rounded : quiet;
  const uint16_t v[4] = {static_cast<uint16_t>(chosen[0]), static_cast<uint16_t>(chosen[1]),
                         static_cast<uint16_t>(chosen[2]), static_cast<uint16_t>(chosen[3])};
  std::memcpy(p, v, sizeof v);
}

}  // namespace ferry::cpu::portable

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace ferry::cpu::avx2 {

FERRY_INLINE Vec load_u8(const void* p) {
  const __m128i bytes = _mm_loadl_epi64(static_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))};
}
FERRY_INLINE Vec load_bf16(const void* p) {
  const __m128i halves = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))};
}
FERRY_INLINE Vec load_s32(const void* p) {
  return {_mm256_cvtepi32_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
FERRY_INLINE void store_u8(void* p, Vec a) {
  const __m256i words = _mm256_cvtps_epi32(a.v);
  const __m128i halves =
      _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64(static_cast<__m128i*>(p), _mm_packus_epi16(halves, halves));
}
FERRY_INLINE void store_bf16(void* p, Vec a) {
  const __m256i bits = _mm256_castps_si256(a.v), upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));  // NaN
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, nan);
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm_packus_epi32(_mm256_castsi256_si128(chosen),
                                                              _mm256_extracti128_si256(chosen, 1)));
}

}  // namespace ferry::cpu::avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")
namespace ferry::cpu::avx512 {

FERRY_INLINE Vec load_u8(const void* p) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {_mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_cvtepu8_epi32(0xffff, bytes))};
}
FERRY_INLINE Vec load_bf16(const void* p) {
  const __m256i halves = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  const __m512i words = _mm512_maskz_cvtepu16_epi32(0xffff, halves);
  return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, words, 16))};
}
FERRY_INLINE Vec load_s32(const void* p) {
  return {_mm512_maskz_cvtepi32_ps(0xffff, _mm512_loadu_si512(p))};
}
FERRY_INLINE void store_u8(void* p, Vec a) {
  const __m512i words = _mm512_maskz_cvtps_epi32(0xffff, a.v);
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(0xffff, words));
}
FERRY_INLINE void store_bf16(void* p, Vec a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i upper = _mm512_maskz_srli_epi32(0xffff, bits, 16);
  const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_maskz_srli_epi32(0xffff, _mm512_add_epi32(bits, bias), 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i chosen = _mm512_mask_or_epi32(rounded, nan, upper, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(0xffff, chosen));
}

}  // namespace ferry::cpu::avx512
#pragma GCC pop_options

#endif  // __x86_64__
