// Which vector instructions vision's row and box loops may use on this machine, found at run time.
#pragma once

#include <cstdint>
#include <span>

// Vector code stands in `#pragma GCC target` regions, which clang does not know: what clang builds
// (the fuzz targets) runs the plain loops.
#if defined(__x86_64__) && !defined(__clang__)
#define FERRY_VISION_X86 1
#endif

namespace ferry::vision {

// Ordered: each includes the ones before it.
enum class Simd : uint8_t {
  kPortable,    // plain loops
  kAvx2,        // AVX2 and FMA
  kAvx512,      // AVX-512 F, BW, DQ, VL
  kAvx512Vbmi,  // and VBMI: bytes permuted across a whole register
};

// The best level here, lowered (never raised) by the environment variable FERRY_CPU_ISA
// (portable, avx2, avx512), which the CPU engine reads too. Read once.
Simd best_simd();

// Every level that can run here, lowest first, without the environment: what tests compare.
std::span<const Simd> supported_simd();

const char* simd_name(Simd level);

}  // namespace ferry::vision
