// The multiply-add of the convolutions' register tiles, for each kind of operand and instruction
// set. Operands come in groups of four bytes: one float, two bfloat16, or four bytes; a group's
// products all add to one 4-byte sum (the layout of the dot-product instructions).
//
// A Dot is a struct with
//
//   Sum, Row, Column              registers: sums; a group in every lane; a group a lane
//   load_sum(p) no_sum() store(p, sum)
//   row(p) column(p)              from memory of any alignment
//   dot(sum, row, column)
//   kRowRegs, kColumnRegs         registers that a Row and a Column take, scratch included
//
// F32Dot: sums of floats. Bf16Dot: the products of bfloat16 are exact in float; where no
// instruction does it, a group is split in two floats. ByteDot: unsigned rows by signed columns,
// exact sums in int32 (pmaddubsw, which saturates, is not used). Stands in the namespaces of vec.h,
// and in avx512_vnni and avx512_bf16, which have one Dot each.
#pragma once

#include "backends/cpu/kernels/vec.h"

namespace ferry::cpu::portable {

struct ByteDot {
  static constexpr int kRowRegs = 1, kColumnRegs = 1;
  using Sum = Ints;
  struct Row {
    int32_t v[4];
  };
  struct Column {
    int8_t v[16];
  };
  static FERRY_INLINE Sum no_sum() { return Ints{}; }
  static FERRY_INLINE Sum load_sum(const float* p) {
    Ints r;
    std::memcpy(&r, p, sizeof r);
    return r;
  }
  static FERRY_INLINE void store(float* p, Sum s) { std::memcpy(p, &s, sizeof s); }
  static FERRY_INLINE Row row(const char* p) {
    uint8_t v[4];
    std::memcpy(v, p, sizeof v);
    return {{v[0], v[1], v[2], v[3]}};
  }
  static FERRY_INLINE Column column(const float* p) {
    Column r;
    std::memcpy(&r, p, sizeof r);
    return r;
  }
  static FERRY_INLINE Sum dot(Sum sum, const Row& a, const Column& b) {
    for (int lane = 0; lane < 4; ++lane) {
      for (int i = 0; i < 4; ++i) sum[lane] += a.v[i] * b.v[4 * lane + i];
    }
    return sum;
  }
};

// The floats that the lower and the upper bfloat16 of each group are.
FERRY_INLINE Vec low_half(Vec a) { return {(Floats)((Ints)a.v << 16)}; }
FERRY_INLINE Vec high_half(Vec a) { return {(Floats)((Ints)a.v & ~0xffff)}; }

}  // namespace ferry::cpu::portable

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace ferry::cpu::avx2 {

struct ByteDot {
  static constexpr int kRowRegs = 3, kColumnRegs = 2;  // and one for the product
  using Sum = __m256i;
  struct Row {
    __m256i even, odd;
  };
  using Column = Row;
  static FERRY_INLINE Sum no_sum() { return _mm256_setzero_si256(); }
  static FERRY_INLINE Sum load_sum(const float* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static FERRY_INLINE void store(float* p, Sum s) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), s);
  }
  static FERRY_INLINE Row row(const char* p) {
    int32_t group;
    std::memcpy(&group, p, sizeof group);
    const __m256i v = _mm256_set1_epi32(group);
    return {_mm256_and_si256(v, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(v, 8)};
  }
  static FERRY_INLINE Column column(const float* p) {
    const __m256i v = load_sum(p);
    return {_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
  }
  static FERRY_INLINE Sum dot(Sum sum, const Row& a, const Column& b) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a.even, b.even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a.odd, b.odd));
  }
};

FERRY_INLINE Vec low_half(Vec a) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a.v), 16))};
}
FERRY_INLINE Vec high_half(Vec a) {
  return {_mm256_and_ps(a.v, _mm256_castsi256_ps(_mm256_set1_epi32(~0xffff)))};
}

}  // namespace ferry::cpu::avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")
namespace ferry::cpu::avx512 {

// 32-bit sums in a vector; the Dots of bytes share them.
struct IntSums {
  using Sum = __m512i;
  static FERRY_INLINE Sum no_sum() { return _mm512_setzero_si512(); }
  static FERRY_INLINE Sum load_sum(const float* p) { return _mm512_loadu_si512(p); }
  static FERRY_INLINE void store(float* p, Sum s) { _mm512_storeu_si512(p, s); }
  static FERRY_INLINE __m512i broadcast(const char* p) {
    int32_t group;
    std::memcpy(&group, p, sizeof group);
    return _mm512_set1_epi32(group);
  }
};

struct ByteDot : IntSums {
  static constexpr int kRowRegs = 3, kColumnRegs = 2;  // and one for the product
  struct Row {
    __m512i even, odd;
  };
  using Column = Row;
  static FERRY_INLINE Row row(const char* p) {
    const __m512i v = broadcast(p);
    return {_mm512_and_si512(v, _mm512_set1_epi16(0xff)), _mm512_srli_epi16(v, 8)};
  }
  static FERRY_INLINE Column column(const float* p) {
    const __m512i v = load_sum(p);
    return {_mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8), _mm512_srai_epi16(v, 8)};
  }
  static FERRY_INLINE Sum dot(Sum sum, const Row& a, const Column& b) {
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(a.even, b.even));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a.odd, b.odd));
  }
};

FERRY_INLINE Vec low_half(Vec a) {
  return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(a.v), 16))};
}
FERRY_INLINE Vec high_half(Vec a) {
  return {_mm512_and_ps(a.v, _mm512_castsi512_ps(_mm512_set1_epi32(~0xffff)))};
}

}  // namespace ferry::cpu::avx512
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace ferry::cpu::avx512_vnni {

using avx512::Vec;

struct ByteDot : avx512::IntSums {
  static constexpr int kRowRegs = 1, kColumnRegs = 1;
  using Row = __m512i;
  using Column = __m512i;
  static FERRY_INLINE Row row(const char* p) { return broadcast(p); }
  static FERRY_INLINE Column column(const float* p) { return load_sum(p); }
  static FERRY_INLINE Sum dot(Sum sum, Row a, Column b) { return _mm512_dpbusd_epi32(sum, a, b); }
};

}  // namespace ferry::cpu::avx512_vnni
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")
namespace ferry::cpu::avx512_bf16 {

using avx512::Vec;

struct Bf16Dot {
  static constexpr int kRowRegs = 1, kColumnRegs = 1;
  using Sum = __m512;
  using Row = __m512bh;
  using Column = __m512bh;
  static FERRY_INLINE Sum no_sum() { return _mm512_setzero_ps(); }
  static FERRY_INLINE Sum load_sum(const float* p) { return _mm512_loadu_ps(p); }
  static FERRY_INLINE void store(float* p, Sum s) { _mm512_storeu_ps(p, s); }
  static FERRY_INLINE Row row(const char* p) { return (__m512bh)avx512::IntSums::broadcast(p); }
  static FERRY_INLINE Column column(const float* p) { return (__m512bh)_mm512_loadu_si512(p); }
  static FERRY_INLINE Sum dot(Sum sum, Row a, Column b) { return _mm512_dpbf16_ps(sum, a, b); }
};

}  // namespace ferry::cpu::avx512_bf16
#pragma GCC pop_options

#endif  // __x86_64__
