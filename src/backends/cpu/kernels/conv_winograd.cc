// 3x3 convolution of stride 1 with a quarter of the multiplications: Winograd's F(4x4, 3x3) (Lavin
// and Gray, arXiv 1509.09308). A tile of 6x6 input pixels becomes 36 "points" a channel; at each
// point the channels of many tiles are multiplied by transformed weights, an ordinary matrix
// product (gemm_tile.h); 36 points of a product become 4x4 outputs.
//
//   U = G g G^T (when packing)     V = B^T d B     M_p = V_p U_p for p in 36     Y = A^T M A, then
//   the epilogue
//
// Tiles go in blocks whose V stays in L2. For each block of output channels the 36 products and the
// output transform follow each other, so M is small and U is read once a block of tiles, in memory
// order. Where a picture has few tiles and U is large (20x20 pixels), threads divide the products
// by points rather than by tiles: each then reads its part of U only. Rounding errors grow about
// tenfold against a direct sum: 1e-6 to 1e-5 of the largest output.
#include <algorithm>

#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/vec.h"

namespace ferry::cpu {
namespace {

constexpr int64_t kTile = 4, kPatch = 6, kPoints = 36;

struct WinogradInput {
  const float* first;  // pixel (0, 0) of the 6x6 patch when it lies inside the picture
  int64_t row_step, pixel_step;
  const float* const* pixels;  // else 36 pointers (null for the former)
  int64_t channels;
  float* v;  // point p of channel c: v[p * plane + c]; whole vectors are written
  int64_t plane;
};

struct WinogradOutput {
  const float* m;  // point p of channel c: m[p * plane + c]
  int64_t plane;
  const float* bias;
  int64_t channels;
  float* output;
  int64_t output_row, output_pixel;
  const float* residual;
  int64_t residual_row, residual_pixel;
  int64_t rows, cols;  // of the 4x4 that lie inside the picture
  int shift;           // 1 for an upsampled residual
  int64_t odd_y,
      odd_x;  // the tile's position modulo 2, when upsampled (tiles begin at multiples of 4: 0)
  Activation activation;
};

struct WinogradFns {
  void (*input)(const WinogradInput&);
  void (*output[3][kActivationKinds])(const WinogradOutput&);
};

}  // namespace
}  // namespace ferry::cpu

#define FERRY_KERNEL "backends/cpu/kernels/activation.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/conv_winograd.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {
namespace {

const WinogradFns& winograd_fns(Isa isa) {
  static constexpr const WinogradFns* kTable[] = FERRY_BY_ISA(kWinograd);
  return *kTable[static_cast<int>(isa)];
}

struct Cut {
  const GemmTiles* tiles;
  int64_t tiles_y, tiles_x, count;  // count: of all pictures
  int64_t vecs, blocks;             // of output channels
  int64_t row;          // floats from a tile to the next in V: input channels in whole vectors
  int64_t block_tiles;  // tiles that go through together
  bool by_points;       // threads divide the points of all tiles
};

int64_t u_floats(const ConvProblem& p, const Cut& c) {
  return kPoints * p.shape.in_c * c.vecs * c.tiles->lanes;
}

Cut make_cut(const ConvProblem& p, int threads) {
  const ConvShape& s = p.shape;
  Cut c{};
  c.tiles = &gemm_tiles(p.isa);
  c.tiles_y = ceil_div(s.out_h, kTile);
  c.tiles_x = ceil_div(s.out_w, kTile);
  c.count = s.batch * c.tiles_y * c.tiles_x;
  c.vecs = ceil_div(s.out_c, c.tiles->lanes);
  c.blocks = c.vecs == 1 ? 1 : c.vecs / 2;
  c.row = round_up(s.in_c, c.tiles->lanes);

  // Much U wants many tiles a reading; little leaves L2 to V and M.
  const int64_t u_bytes = u_floats(p, c) * int64_t{sizeof(float)}, l2 = l2_cache_bytes();
  const int64_t budget = u_bytes > l2 / 4 ? l2 * 2 / 3 : l2 / 3;
  const int64_t tile_bytes = kPoints * (c.row + 2 * c.tiles->lanes) * int64_t{sizeof(float)};
  const int64_t rows = preferred_rows(*c.tiles, c.vecs);
  const int64_t most = std::max<int64_t>(budget / tile_bytes / rows, 1) * rows;
  const int64_t share = ceil_div(c.count, threads);
  c.by_points = threads > 1 && u_bytes > l2 / 4 && share < 40;
  c.block_tiles = c.by_points ? c.count : ceil_div(share, ceil_div(share, most));
  return c;
}

// A block of output channels; its packed part is bias[width], then [points][in_c][width].
struct Block {
  int vecs;
  int64_t first_c, width, channels, packed;
};

Block block_at(const ConvProblem& p, const Cut& c, int64_t index) {
  const int64_t first_vec = index * 2;
  Block b{};
  b.vecs = next_block_vecs(c.vecs - first_vec);
  b.first_c = first_vec * c.tiles->lanes;
  b.width = b.vecs * c.tiles->lanes;
  b.channels = std::min(b.width, p.shape.out_c - b.first_c);
  b.packed = b.first_c * (1 + kPoints * p.shape.in_c);
  return b;
}

// Planes are set apart by a cache line, lest a power of two put all points of a tile into the same
// cache set.
struct Buffers {
  float* v;
  int64_t v_plane;
  float* m;  // [block or 1][points][tiles][width]
  float* zeros;
};

int64_t v_plane_floats(const Cut& c) { return c.block_tiles * c.row + 16; }
int64_t m_plane_floats(const Cut& c, int64_t width) { return c.block_tiles * width + 16; }
int64_t m_floats(const Cut& c) {
  return kPoints * (c.by_points ? c.block_tiles * c.vecs * c.tiles->lanes + 16 * c.blocks
                                : m_plane_floats(c, 3 * c.tiles->lanes));
}
int64_t buffer_floats(const Cut& c) {
  return round_up(kPoints * v_plane_floats(c) + m_floats(c) + c.row, 16);
}

Buffers buffers_of(const Cut& c, void* scratch, int worker) {
  float* base = static_cast<float*>(scratch) + worker * buffer_floats(c);
  float* m = base + kPoints * v_plane_floats(c);
  return {base, v_plane_floats(c), m, m + m_floats(c)};
}

struct Run {
  const ConvProblem& p;
  const ConvArgs& args;
  const WinogradFns& fns;
  Cut cut;
  void (*output)(const WinogradOutput&);
};

struct TilePlace {
  int64_t n, y, x;  // picture and first output pixel
};

TilePlace place_of(const Cut& c, int64_t tile) {
  const int64_t in_picture = tile % (c.tiles_y * c.tiles_x);
  return {tile / (c.tiles_y * c.tiles_x), in_picture / c.tiles_x * kTile,
          in_picture % c.tiles_x * kTile};
}

// Tile number `tile` of the picture into place `slot` of the buffers.
void input_tile(const Run& r, const Buffers& b, int64_t tile, int64_t slot) {
  const ConvShape& s = r.p.shape;
  const TilePlace at = place_of(r.cut, tile);
  const int64_t y = at.y - s.pad_top, x = at.x - s.pad_left;
  const float* picture =
      static_cast<const float*>(r.args.input) + at.n * s.in_h * s.in_w * r.p.in_stride;
  const float* pixels[kPoints];
  WinogradInput in = {.first = picture + (y * s.in_w + x) * r.p.in_stride,
                      .row_step = s.in_w * r.p.in_stride,
                      .pixel_step = r.p.in_stride,
                      .pixels = nullptr,
                      .channels = s.in_c,
                      .v = b.v + slot * r.cut.row,
                      .plane = b.v_plane};
  if (y < 0 || x < 0 || y + kPatch > s.in_h || x + kPatch > s.in_w) {
    for (int64_t i = 0; i < kPatch; ++i) {
      for (int64_t j = 0; j < kPatch; ++j) {
        const bool inside = y + i >= 0 && y + i < s.in_h && x + j >= 0 && x + j < s.in_w;
        pixels[i * kPatch + j] =
            inside ? picture + ((y + i) * s.in_w + x + j) * r.p.in_stride : b.zeros;
      }
    }
    in.pixels = pixels;
  }
  r.fns.input(in);
}

// The product at one point: `tiles` rows of V with one block's U.
void multiply_point(const Run& r, const Buffers& b, const Block& block, int64_t point,
                    int64_t tiles, float* m, int64_t m_plane) {
  const int64_t in_c = r.p.shape.in_c;
  const float* u =
      static_cast<const float*>(r.args.packed) + block.packed + block.width * (1 + point * in_c);
  const int64_t parts = ceil_div(tiles, r.cut.tiles->max_rows[block.vecs]);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = tiles * part / parts, rows = tiles * (part + 1) / parts - first;
    r.cut.tiles->fn[block.vecs][rows]({.a = b.v + point * b.v_plane + first * r.cut.row,
                                       .a_row = r.cut.row,
                                       .k = in_c,
                                       .b = u,
                                       .out = m + point * m_plane + first * block.width,
                                       .out_row = block.width});
  }
}

void output_tile(const Run& r, const Block& block, int64_t tile, const float* m, int64_t m_plane) {
  const ConvShape& s = r.p.shape;
  const TilePlace at = place_of(r.cut, tile);
  const bool upsampled = r.p.epilogue.residual == Residual::kBeforeActivationUpsampled2x;
  const int64_t half = upsampled ? 2 : 1, residual_h = ceil_div(s.out_h, half),
                residual_w = ceil_div(s.out_w, half);
  const float* residual = static_cast<const float*>(r.args.residual);
  r.output({.m = m,
            .plane = m_plane,
            .bias = static_cast<const float*>(r.args.packed) + block.packed,
            .channels = block.channels,
            .output = static_cast<float*>(r.args.output) +
                      ((at.n * s.out_h + at.y) * s.out_w + at.x) * r.p.out_stride + block.first_c,
            .output_row = s.out_w * r.p.out_stride,
            .output_pixel = r.p.out_stride,
            .residual = residual
                            ? residual +
                                  ((at.n * residual_h + at.y / half) * residual_w + at.x / half) *
                                      r.p.residual_stride +
                                  block.first_c
                            : nullptr,
            .residual_row = residual_w * r.p.residual_stride,
            .residual_pixel = r.p.residual_stride,
            .rows = std::min(kTile, s.out_h - at.y),
            .cols = std::min(kTile, s.out_w - at.x),
            .shift = upsampled ? 1 : 0,
            .odd_y = 0,
            .odd_x = 0,
            .activation = r.p.epilogue.activation});
}

// Each worker takes blocks of tiles through all three steps.
void run_by_tiles(const Run& r, ThreadPool& pool) {
  pool.parallel_ranges(r.cut.count, [&](int64_t begin, int64_t end, int worker) {
    const Buffers b = buffers_of(r.cut, r.args.scratch, worker);
    std::fill_n(b.zeros, r.cut.row, 0.0f);
    const int64_t blocks = ceil_div(end - begin, r.cut.block_tiles);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t first = begin + (end - begin) * i / blocks,
                    tiles = begin + (end - begin) * (i + 1) / blocks - first;
      for (int64_t t = 0; t < tiles; ++t) input_tile(r, b, first + t, t);
      for (int64_t o = 0; o < r.cut.blocks; ++o) {
        const Block block = block_at(r.p, r.cut, o);
        const int64_t m_plane = m_plane_floats(r.cut, block.width);
        for (int64_t point = 0; point < kPoints; ++point)
          multiply_point(r, b, block, point, tiles, b.m, m_plane);
        for (int64_t t = 0; t < tiles; ++t)
          output_tile(r, block, first + t, b.m + t * block.width, m_plane);
      }
    }
  });
}

// All tiles at once; each step is divided anew, with a barrier between.
void run_by_points(const Run& r, ThreadPool& pool) {
  const Buffers b = buffers_of(r.cut, r.args.scratch, 0);
  std::fill_n(b.zeros, r.cut.row, 0.0f);
  const auto m_of = [&](const Block& block, int64_t index) {
    return b.m + kPoints * (block.first_c * r.cut.block_tiles + 16 * index);
  };
  pool.parallel_for(r.cut.count, [&](int64_t tile, int) { input_tile(r, b, tile, tile); });
  pool.parallel_for(r.cut.blocks * kPoints, [&](int64_t task, int) {
    const int64_t index = task / kPoints;
    const Block block = block_at(r.p, r.cut, index);
    multiply_point(r, b, block, task % kPoints, r.cut.count, m_of(block, index),
                   m_plane_floats(r.cut, block.width));
  });
  pool.parallel_for(r.cut.count * r.cut.blocks, [&](int64_t task, int) {
    const int64_t tile = task / r.cut.blocks, index = task % r.cut.blocks;
    const Block block = block_at(r.p, r.cut, index);
    output_tile(r, block, tile, m_of(block, index) + tile * block.width,
                m_plane_floats(r.cut, block.width));
  });
}

const char* refuse(const ConvProblem& p) {
  if (const char* why = refuse_not_f32(p)) return why;
  const ConvShape& s = p.shape;
  if (s.kernel_h != 3 || s.kernel_w != 3) return "not a 3x3 kernel";
  if (s.stride_h != 1 || s.stride_w != 1) return "not stride 1";
  if (s.dilation_h != 1 || s.dilation_w != 1) return "dilated";
  if (s.groups != 1) return "grouped";
  return nullptr;
}

// Products as in conv_igemm.cc; transforms as measured; U from beyond L2 at 8 bytes a cycle.
double cost(const ConvProblem& p, int threads) {
  const Cut c = make_cut(p, threads);
  const double tiles = static_cast<double>(c.count), vecs = static_cast<double>(c.vecs);
  const double in_vecs = static_cast<double>(c.row / c.tiles->lanes);
  const double products = tiles * kPoints * static_cast<double>(p.shape.in_c) * vecs / 2 / 0.92;
  const double transforms = tiles * (in_vecs * 110 + vecs * (110 + 16 * 12));
  const double u = static_cast<double>(u_floats(p, c)) * sizeof(float);
  const double readings = c.by_points ? 1
                                      : std::max(static_cast<double>(threads),
                                                 tiles / static_cast<double>(c.block_tiles));
  return (products + transforms + readings * u / 8) / threads;
}

size_t packed_bytes(const ConvProblem& p) {
  const Cut c = make_cut(p, 1);
  return static_cast<size_t>(c.vecs * c.tiles->lanes + u_floats(p, c)) * sizeof(float);
}

void pack(const ConvProblem& p, const float* weights, const float* bias, void* packed) {
  static constexpr double kG[6][3] = {{1.0 / 4, 0, 0},
                                      {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                      {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                      {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                      {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                      {0, 0, 1}};
  const Cut c = make_cut(p, 1);
  const int64_t in_c = p.shape.in_c;
  for (int64_t index = 0; index < c.blocks; ++index) {
    const Block block = block_at(p, c, index);
    float* to = static_cast<float*>(packed) + block.packed;
    std::fill_n(to, block.width * (1 + kPoints * in_c), 0.0f);
    for (int64_t o = 0; o < block.channels; ++o) {
      to[o] = bias ? bias[block.first_c + o] : 0.0f;
      for (int64_t i = 0; i < in_c; ++i) {
        const float* g = weights + ((block.first_c + o) * in_c + i) * 9;
        double half[6][3];  // G g
        for (int row = 0; row < 6; ++row) {
          for (int x = 0; x < 3; ++x) {
            half[row][x] = kG[row][0] * static_cast<double>(g[x]) +
                           kG[row][1] * static_cast<double>(g[3 + x]) +
                           kG[row][2] * static_cast<double>(g[6 + x]);
          }
        }
        for (int64_t point = 0; point < kPoints; ++point) {
          const double(&h)[3] = half[point / 6];
          const double(&q)[3] = kG[point % 6];
          to[block.width * (1 + point * in_c + i) + o] =
              static_cast<float>(h[0] * q[0] + h[1] * q[1] + h[2] * q[2]);
        }
      }
    }
  }
}

size_t scratch_bytes(const ConvProblem& p, int threads) {
  const Cut c = make_cut(p, threads);
  return static_cast<size_t>(buffer_floats(c) * (c.by_points ? 1 : threads)) * sizeof(float);
}

void run(const ConvProblem& p, const ConvArgs& args, ThreadPool& pool) {
  const WinogradFns& fns = winograd_fns(p.isa);
  const int at = p.epilogue.residual == Residual::kNone              ? 0
                 : p.epilogue.residual == Residual::kAfterActivation ? 2
                                                                     : 1;
  const Run r = {p, args, fns, make_cut(p, pool.threads()),
                 fns.output[at][static_cast<int>(p.epilogue.activation.kind)]};
  r.cut.by_points ? run_by_points(r, pool) : run_by_tiles(r, pool);
}

}  // namespace

const ConvTactic conv_winograd4 = {
    .name = "winograd4",
    .refuse = refuse,
    .cost = cost,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .prepare = nullptr,
    .run = run,
};

}  // namespace ferry::cpu
