#include "backends/cpu/kernels/gemm_tile.h"

#include <utility>

#include "backends/cpu/kernels/dot.h"

#define FERRY_KERNEL "backends/cpu/kernels/gemm_tile.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/gemm_tile_dots.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace ferry::cpu::avx512_vnni {
#include "backends/cpu/kernels/gemm_tile.inc"
namespace {
constexpr GemmTiles kByteTiles = make_gemm_tiles<ByteDot>();
}
}  // namespace ferry::cpu::avx512_vnni
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")
namespace ferry::cpu::avx512_bf16 {
#include "backends/cpu/kernels/gemm_tile.inc"
namespace {
constexpr GemmTiles kBf16Tiles = make_gemm_tiles<Bf16Dot>();
}
}  // namespace ferry::cpu::avx512_bf16
#pragma GCC pop_options

#endif

namespace ferry::cpu {

const GemmTiles& gemm_tiles(Isa isa, DType pixels) {
  static constexpr const GemmTiles* kF32[] = FERRY_BY_ISA(kF32Tiles);
#if defined(__x86_64__)
  if (pixels == DType::kU8 && isa >= Isa::kAvx512Vnni) return avx512_vnni::kByteTiles;
  if (pixels == DType::kBf16 && isa >= Isa::kAvx512Bf16) return avx512_bf16::kBf16Tiles;
#endif
  static constexpr const GemmTiles* kBf16[] = FERRY_BY_ISA(kBf16Tiles);
  static constexpr const GemmTiles* kByte[] = FERRY_BY_ISA(kByteTiles);
  const auto* table = pixels == DType::kBf16 ? kBf16 : pixels == DType::kU8 ? kByte : kF32;
  return *table[static_cast<int>(isa)];
}

}  // namespace ferry::cpu
