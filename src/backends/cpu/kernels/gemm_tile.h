// The multiply-add core of the convolutions: a register tile of `rows` pixels by `vecs` vectors of
// output channels (internal).
//
//   out[r][j] = init[j] + sum over ty, tx, k of dot(group k at a + r * a_row + ty * a_tap_y + tx *
//   a_tap_x, b[ty][tx][k][j])
//
// where a group is four bytes: a float, two bfloat16, or four bytes (dot.h). The sums stay in
// registers from the first tap to the last. Each step of k reads one vector a column of the tile
// from b, in memory order, and one group a row from a. Rows lie at a constant distance, so their
// addresses need few registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/storage.h"

namespace ferry::cpu {

struct GemmTile {
  const std::byte* a = nullptr;  // any alignment
  int64_t a_row = 0;             // bytes, as the other distances in a
  int64_t taps_y = 1, a_tap_y = 0;
  int64_t taps_x = 1, a_tap_x = 0;
  int64_t k = 0;  // groups
  // Sums, and groups of b, take 4 bytes each; the sums of bytes are int32.
  const float* b = nullptr;     // [taps_y][taps_x][k][vecs * lanes]
  const float* init = nullptr;  // [vecs * lanes], or null for zeros
  float* out = nullptr;         // [rows][out_row], vecs * lanes sums written in each
  int64_t out_row = 0;          // sums
};

using GemmTileFn = void (*)(const GemmTile&);

struct GemmTiles {
  static constexpr int kMaxRows = 28, kMaxVecs = 4;
  int lanes;                                  // sums in a vector
  int max_rows[kMaxVecs + 1];                 // by vecs; 0 where the registers do not suffice
  GemmTileFn fn[kMaxVecs + 1][kMaxRows + 1];  // [vecs][rows]
};

// For pixels of this type: kF32, kBf16 (by bfloat16), kU8 (by signed bytes).
const GemmTiles& gemm_tiles(Isa, DType = DType::kF32);

// Vectors of the next column block when `vecs` are left: pairs, and a triple rather than a pair and
// a single.
inline int next_block_vecs(int64_t vecs) { return vecs == 1 ? 1 : vecs == 3 ? 3 : 2; }

// The most rows of a tile for a matrix of `vecs` column vectors.
inline int preferred_rows(const GemmTiles& tiles, int64_t vecs) {
  return tiles.max_rows[vecs >= 4 ? 2 : static_cast<int>(vecs)];
}

}  // namespace ferry::cpu
