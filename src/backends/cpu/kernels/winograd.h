// What the Winograd tactics share (internal): tiles of 4x4 outputs, their way through V, products
// and M, and the threads.
//
// A variant turns a patch of input pixels into `planes` vectors of k floats (V), each is multiplied
// by one of `matrices` k x out_c matrices (U), and the products (M) become 4x4 outputs. Tiles go in
// blocks whose V stays in L2. For each block of output channels the products and the output
// transform follow each other, so M is small and U is read once a block of tiles, in memory order.
// Where a picture has few tiles and U is large (20x20 pixels), threads divide the products by
// planes rather than by tiles: each then reads its part of U only.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv.h"

namespace ferry::cpu {

inline constexpr int64_t kWinogradTile = 4;
// Points a, b of the transforms at +-a and +-b: sums, products and powers of them are exact in f32,
// and of such pairs these lose the fewest bits (about half of what 1 and 2 lose; compare Barabasz
// et al., arXiv 1803.10986).
inline constexpr float kWinograd4Points[] = {0.625f, 1.5f}, kWinogradS2Points[] = {0.5f, 1.25f};
inline constexpr int kMaxWinogradPlanes = 81, kMaxPatchPointers = 81;

// One tile's input. Pixel (i, j) of the patch is first + i * row_step + j * pixel_step where the
// patch lies inside the picture (`pixels` is null), else pixels[i * patch_cols + j].
struct WinogradInput {
  const float* first = nullptr;
  int64_t row_step = 0, pixel_step = 0;
  const float* const* pixels = nullptr;
  int64_t channels = 0;
  float* v = nullptr;  // plane p of depth k: v[p * plane + k]; whole vectors are written
  int64_t plane = 0;
};

struct WinogradOutput {
  const float* m = nullptr;  // plane p of channel c: m[p * plane + c]
  int64_t plane = 0;
  const float* bias = nullptr;
  int64_t channels = 0;
  float* output = nullptr;
  int64_t output_row = 0, output_pixel = 0;
  const float* residual = nullptr;
  int64_t residual_row = 0, residual_pixel = 0;
  int64_t rows = 0, cols = 0;  // of the 4x4 that lie inside the picture
  int shift = 0;               // 1 for an upsampled residual (tiles begin at multiples of 4)
  Activation activation;
};

struct WinogradFns {
  void (*input)(const WinogradInput&);
  void (*output[3][kActivationKinds])(const WinogradOutput&);  // by residual: none, before, after
};

struct WinogradVariant {
  int planes, matrices;
  int patch_rows, patch_cols;            // pixels that a tile reads, and columns of them in units
  int column_pixels;                     // pixels in a unit: 1, or 2 where pairs of columns are one
  double input_cycles, output_cycles;    // a tile and vector, without the activation
  int (*matrix_of)(int plane);           // not falling
  int64_t (*depth)(const ConvProblem&);  // k
  // The matrices' elements of input depth k for one output channel, whose weights are
  // [in_c][kernel_h][kernel_w].
  void (*weights)(const ConvProblem&, const float* weights, int64_t k, double* elements);
  const WinogradFns* const* fns;  // by Isa
};

double winograd_cost(const WinogradVariant&, const ConvProblem&, int threads);
size_t winograd_packed_bytes(const WinogradVariant&, const ConvProblem&);
void winograd_pack(const WinogradVariant&, const ConvProblem&, const float* weights,
                   const float* bias, void* packed);
size_t winograd_scratch_bytes(const WinogradVariant&, const ConvProblem&, int threads);
void winograd_run(const WinogradVariant&, const ConvProblem&, const ConvArgs&, ThreadPool&);

// The tactic of a variant, apart from its name and what it refuses.
template <const WinogradVariant& kVariant>
constexpr ConvTactic winograd_tactic(const char* name, const char* (*refuse)(const ConvProblem&)) {
  return {
      .name = name,
      .refuse = refuse,
      .cost = [](const ConvProblem& p, int threads) { return winograd_cost(kVariant, p, threads); },
      .packed_bytes = [](const ConvProblem& p) { return winograd_packed_bytes(kVariant, p); },
      .pack = [](const ConvProblem& p, const float* weights, const float* bias,
                 void* packed) { winograd_pack(kVariant, p, weights, bias, packed); },
      .scratch_bytes = [](const ConvProblem& p,
                          int threads) { return winograd_scratch_bytes(kVariant, p, threads); },
      .prepare = nullptr,
      .run = [](const ConvProblem& p, const ConvArgs& args,
                ThreadPool& pool) { winograd_run(kVariant, p, args, pool); },
  };
}

}  // namespace ferry::cpu
