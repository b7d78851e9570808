#include "backends/cpu/kernels/gemm_tile.h"

#include <utility>

#include "backends/cpu/kernels/vec.h"

#define FERRY_KERNEL "backends/cpu/kernels/gemm_tile.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {

const GemmTiles& gemm_tiles(Isa isa) {
  static constexpr const GemmTiles* kTables[] = FERRY_BY_ISA(kGemmTiles);
  return *kTables[static_cast<int>(isa)];
}

}  // namespace ferry::cpu
