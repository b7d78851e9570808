// A vector of floats for each instruction set, all with the same names, so that a kernel is written
// once.
//
// ferry::cpu::{portable, avx2, avx512} each hold `Vec`, `Mask` and the functions below on them. A
// kernel stands in a file `x.inc`, which foreach_isa.inc includes once in each namespace, inside
// the matching target region; see there. The AVX namespaces may be used only inside such a region.
// Without them (not x86-64) the names mean the portable one.
//
// clang-format off
//   load(p) load(p, mask) store(p, v) store(p, v, mask)  any alignment; masked-out elements are not touched
//   first(n), between(a, b)                              masks: lanes below n; lanes a to b - 1
//   zero(), set(x), load_all(p)                          load_all: *p in every lane
//   a + b, a - b, a * b, a / b, abs, negate
//   min(a, b), max(a, b)                                 b where a or b is NaN
//   fma(a, b, c), fms(a, b, c), nfma(a, b, c)            a * b + c, a * b - c, c - a * b
//   add_exponent(v, kRoundBias + n)                      v * 2^n, n integral, v and the result normal
//   reciprocal(v)                                        1 / v within 2 ulp, |v| normal and below 2^126
//   select_negative(s, a, b)                             a where s has its sign bit set, else b
// clang-format on
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define FERRY_INLINE inline __attribute__((always_inline))

namespace ferry::cpu {

// 1.5 * 2^23: a float this large has no fraction bits, so adding it rounds to the nearest integer,
// which then stands in the low bits of the sum. For |v| < 2^22.
inline constexpr float kRoundBias = 12582912.0f;

}  // namespace ferry::cpu

namespace ferry::cpu::portable {

typedef float Floats __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));

struct Vec {
  Floats v;
  static constexpr int kLanes = 4;
};
struct Mask {
  int begin, end;
};

FERRY_INLINE Mask first(int n) { return {0, n}; }
FERRY_INLINE Mask between(int a, int b) { return {a, b}; }
FERRY_INLINE Vec zero() { return {Floats{}}; }
FERRY_INLINE Vec set(float x) { return {Floats{x, x, x, x}}; }
FERRY_INLINE Vec load_all(const float* p) { return set(*p); }
FERRY_INLINE Vec load(const float* p) {
  Vec r;
  std::memcpy(&r.v, p, sizeof r.v);
  return r;
}
FERRY_INLINE void store(float* p, Vec a) { std::memcpy(p, &a.v, sizeof a.v); }
FERRY_INLINE Vec load(const float* p, Mask m) {
  Vec r = zero();
  for (int i = m.begin; i < m.end; ++i) r.v[i] = p[i];
  return r;
}
FERRY_INLINE void store(float* p, Vec a, Mask m) {
  for (int i = m.begin; i < m.end; ++i) p[i] = a.v[i];
}
FERRY_INLINE Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
FERRY_INLINE Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
FERRY_INLINE Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
FERRY_INLINE Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
FERRY_INLINE Vec min(Vec a, Vec b) { return {a.v < b.v ? a.v : b.v}; }
FERRY_INLINE Vec max(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }
FERRY_INLINE Vec abs(Vec a) { return {(Floats)((Ints)a.v & 0x7fffffff)}; }
FERRY_INLINE Vec negate(Vec a) { return {-a.v}; }
FERRY_INLINE Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
FERRY_INLINE Vec fms(Vec a, Vec b, Vec c) { return {a.v * b.v - c.v}; }
FERRY_INLINE Vec nfma(Vec a, Vec b, Vec c) { return {c.v - a.v * b.v}; }
FERRY_INLINE Vec add_exponent(Vec a, Vec biased) {
  return {(Floats)((Ints)a.v + ((Ints)biased.v << 23))};
}
FERRY_INLINE Vec reciprocal(Vec a) { return {1.0f / a.v}; }
FERRY_INLINE Vec select_negative(Vec s, Vec a, Vec b) { return {((Ints)s.v >> 31) ? a.v : b.v}; }

}  // namespace ferry::cpu::portable

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace ferry::cpu::avx2 {

struct Vec {
  __m256 v;
  static constexpr int kLanes = 8;
};
struct Mask {
  __m256i v;
};

FERRY_INLINE Mask first(int n) {
  return {_mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))};
}
FERRY_INLINE Mask between(int a, int b) { return {_mm256_andnot_si256(first(a).v, first(b).v)}; }
FERRY_INLINE Vec zero() { return {_mm256_setzero_ps()}; }
FERRY_INLINE Vec set(float x) { return {_mm256_set1_ps(x)}; }
FERRY_INLINE Vec load_all(const float* p) { return {_mm256_broadcast_ss(p)}; }
FERRY_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
FERRY_INLINE Vec load(const float* p, Mask m) { return {_mm256_maskload_ps(p, m.v)}; }
FERRY_INLINE void store(float* p, Vec a) { _mm256_storeu_ps(p, a.v); }
FERRY_INLINE void store(float* p, Vec a, Mask m) { _mm256_maskstore_ps(p, m.v, a.v); }
FERRY_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
FERRY_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
FERRY_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
FERRY_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
FERRY_INLINE Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
FERRY_INLINE Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
FERRY_INLINE Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
FERRY_INLINE Vec negate(Vec a) { return {_mm256_xor_ps(_mm256_set1_ps(-0.0f), a.v)}; }
FERRY_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
FERRY_INLINE Vec fms(Vec a, Vec b, Vec c) { return {_mm256_fmsub_ps(a.v, b.v, c.v)}; }
FERRY_INLINE Vec nfma(Vec a, Vec b, Vec c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
FERRY_INLINE Vec add_exponent(Vec a, Vec biased) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(biased.v), 23);
  return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a.v), exponent))};
}
FERRY_INLINE Vec reciprocal(Vec a) { return {_mm256_div_ps(_mm256_set1_ps(1.0f), a.v)}; }
FERRY_INLINE Vec select_negative(Vec s, Vec a, Vec b) { return {_mm256_blendv_ps(b.v, a.v, s.v)}; }

}  // namespace ferry::cpu::avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")
namespace ferry::cpu::avx512 {

struct Vec {
  __m512 v;
  static constexpr int kLanes = 16;
};
struct Mask {
  __mmask16 v;
};

FERRY_INLINE Mask first(int n) { return {static_cast<__mmask16>(n >= 16 ? 0xffff : (1 << n) - 1)}; }
FERRY_INLINE Mask between(int a, int b) {
  return {static_cast<__mmask16>(first(b).v & ~first(a).v)};
}
FERRY_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
FERRY_INLINE Vec set(float x) { return {_mm512_set1_ps(x)}; }
FERRY_INLINE Vec load_all(const float* p) { return {_mm512_set1_ps(*p)}; }
FERRY_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
FERRY_INLINE Vec load(const float* p, Mask m) { return {_mm512_maskz_loadu_ps(m.v, p)}; }
FERRY_INLINE void store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
FERRY_INLINE void store(float* p, Vec a, Mask m) { _mm512_mask_storeu_ps(p, m.v, a.v); }
FERRY_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
FERRY_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
FERRY_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
FERRY_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
// (The unmasked forms of some intrinsics make g++ 12 warn of an uninitialised variable in its own
// header.)
FERRY_INLINE Vec min(Vec a, Vec b) { return {_mm512_maskz_min_ps(0xffff, a.v, b.v)}; }
FERRY_INLINE Vec max(Vec a, Vec b) { return {_mm512_maskz_max_ps(0xffff, a.v, b.v)}; }
FERRY_INLINE Vec abs(Vec a) {
  return {_mm512_and_ps(_mm512_castsi512_ps(_mm512_set1_epi32(0x7fffffff)), a.v)};
}
FERRY_INLINE Vec negate(Vec a) { return {_mm512_xor_ps(_mm512_set1_ps(-0.0f), a.v)}; }
FERRY_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
FERRY_INLINE Vec fms(Vec a, Vec b, Vec c) { return {_mm512_fmsub_ps(a.v, b.v, c.v)}; }
FERRY_INLINE Vec nfma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
FERRY_INLINE Vec add_exponent(Vec a, Vec biased) {
  const __m512i exponent = _mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(biased.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.v), exponent))};
}
FERRY_INLINE Vec reciprocal(Vec a) {
  // The estimate has 14 bits; one Newton step doubles them: r + r (1 - a r).
  const __m512 r = _mm512_maskz_rcp14_ps(0xffff, a.v);
  return {_mm512_fmadd_ps(r, _mm512_fnmadd_ps(a.v, r, _mm512_set1_ps(1.0f)), r)};
}
FERRY_INLINE Vec select_negative(Vec s, Vec a, Vec b) {
  return {_mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(s.v)), b.v, a.v)};
}

}  // namespace ferry::cpu::avx512
#pragma GCC pop_options

#endif  // __x86_64__

// Initialises an array indexed by Isa with the namespaces' `name`; the levels above AVX-512 use its
// code.
#if defined(__x86_64__)
#define FERRY_BY_ISA(name) \
  { &portable::name, &avx2::name, &avx512::name, &avx512::name, &avx512::name }
#else
#define FERRY_BY_ISA(name) \
  { &portable::name, &portable::name, &portable::name, &portable::name, &portable::name }
#endif
