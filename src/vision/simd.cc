#include "vision/simd.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ferry::vision {
namespace {

constexpr Simd kLevels[] = {Simd::kPortable, Simd::kAvx2, Simd::kAvx512, Simd::kAvx512Vbmi};

// __builtin_cpu_supports asks cpuid and xgetbv, so it includes the operating system's consent.
Simd detect() {
#if defined(FERRY_VISION_X86)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Simd::kPortable;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return Simd::kAvx2;
  }
  return __builtin_cpu_supports("avx512vbmi") ? Simd::kAvx512Vbmi : Simd::kAvx512;
#else
  return Simd::kPortable;
#endif
}

Simd wanted() {
  const char* text = std::getenv("FERRY_CPU_ISA");
  const std::string_view name = text ? text : "";
  if (name == "portable") return Simd::kPortable;
  if (name == "avx2") return Simd::kAvx2;
  return Simd::kAvx512Vbmi;
}

}  // namespace

Simd best_simd() {
  static const Simd level = std::min(detect(), wanted());
  return level;
}

std::span<const Simd> supported_simd() {
  return std::span(kLevels).first(static_cast<size_t>(detect()) + 1);
}

const char* simd_name(Simd level) {
  switch (level) {
    case Simd::kPortable:
      return "portable";
    case Simd::kAvx2:
      return "avx2";
    case Simd::kAvx512:
      return "avx512";
    case Simd::kAvx512Vbmi:
      return "avx512vbmi";
  }
  return "?";
}

}  // namespace ferry::vision
