// Which instruction sets the kernels may use here. Found at run time; the same binary runs on every
// x86-64.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ferry::cpu {

// Ordered: each includes the ones before it.
enum class Isa : uint8_t {
  kPortable,    // what the compiler makes of plain vectors for the baseline (SSE2 on x86-64)
  kAvx2,        // AVX2 and FMA
  kAvx512,      // AVX-512 F, BW, DQ, VL
  kAvx512Vnni,  // and VNNI: products of bytes
  kAvx512Bf16,  // and BF16: products of bfloat16
};

// The level that kernels of floats are written for: nothing above AVX-512 helps them.
inline Isa float_isa(Isa isa) { return isa < Isa::kAvx512 ? isa : Isa::kAvx512; }

// The best that the processor and the operating system support, lowered by the environment variable
// FERRY_CPU_ISA (portable, avx2, avx512, avx512_vnni, avx512_bf16) when it is set; it can not raise
// it. Read once.
Isa best_isa();

// What is supported, without the environment.
Isa detected_isa();

// Bytes of a core's second-level cache, within [256 KiB, 2 MiB]; 512 KiB when the system does not
// say. Kernels block their loops by it; results do not depend on it.
int64_t l2_cache_bytes();

const char* isa_name(Isa isa);
std::optional<Isa> isa_from_name(std::string_view name);

}  // namespace ferry::cpu
