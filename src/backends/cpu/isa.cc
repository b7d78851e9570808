#include "backends/cpu/isa.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace ferry::cpu {
namespace {

constexpr const char* kNames[] = {"portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16"};

Isa lowered_isa() {
  const Isa detected = detected_isa();
  const char* wanted = std::getenv("FERRY_CPU_ISA");
  if (wanted == nullptr) return detected;
  const std::optional<Isa> isa = isa_from_name(wanted);
  return isa && *isa < detected ? *isa : detected;
}

}  // namespace

// __builtin_cpu_supports asks cpuid and xgetbv, so it includes the operating system's consent.
Isa detected_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    if (!__builtin_cpu_supports("avx512vnni")) return Isa::kAvx512;
    return __builtin_cpu_supports("avx512bf16") ? Isa::kAvx512Bf16 : Isa::kAvx512Vnni;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::kAvx2;
#endif
  return Isa::kPortable;
}

Isa best_isa() {
  static const Isa isa = lowered_isa();
  return isa;
}

int64_t l2_cache_bytes() {
  static const int64_t bytes = [] {
    int64_t answer = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    answer = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return std::clamp<int64_t>(answer > 0 ? answer : 512 << 10, 256 << 10, 2 << 20);
  }();
  return bytes;
}

const char* isa_name(Isa isa) { return kNames[static_cast<int>(isa)]; }

std::optional<Isa> isa_from_name(std::string_view name) {
  for (int i = 0; i < static_cast<int>(std::size(kNames)); ++i) {
    if (name == kNames[i]) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

}  // namespace ferry::cpu
