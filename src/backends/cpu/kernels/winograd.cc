#include "backends/cpu/kernels/winograd.h"

#include <algorithm>

#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/gemm_tile.h"

namespace ferry::cpu {
namespace {

struct Cut {
  const GemmTiles* tiles;
  int64_t tiles_y, tiles_x, count;  // count: of all pictures
  int64_t vecs, blocks;             // of output channels
  int64_t k,
      row;              // depth, and floats from a tile to the next in V: whole vectors
  int64_t block_tiles;  // tiles that go through together
  bool by_planes;       // threads divide the planes of all tiles
};

Cut make_cut(const WinogradVariant& v, const ConvProblem& p, int threads) {
  const ConvShape& s = p.shape;
  Cut c{};
  c.tiles = &gemm_tiles(p.isa);
  c.tiles_y = ceil_div(s.out_h, kWinogradTile);
  c.tiles_x = ceil_div(s.out_w, kWinogradTile);
  c.count = s.batch * c.tiles_y * c.tiles_x;
  c.vecs = ceil_div(s.out_c, c.tiles->lanes);
  c.blocks = c.vecs == 1 ? 1 : c.vecs / 2;
  c.k = v.depth(p);
  c.row = round_up(c.k, c.tiles->lanes);

  // Much U wants many tiles a reading; little leaves L2 to V and M.
  const int64_t u_bytes = v.matrices * c.k * c.vecs * c.tiles->lanes * int64_t{sizeof(float)},
                l2 = l2_cache_bytes();
  const int64_t budget = u_bytes > l2 / 4 ? l2 * 2 / 3 : l2 / 3;
  const int64_t tile_bytes = v.planes * (c.row + 2 * c.tiles->lanes) * int64_t{sizeof(float)};
  const int64_t rows = preferred_rows(*c.tiles, c.vecs);
  const int64_t most = std::max<int64_t>(budget / tile_bytes / rows, 1) * rows;
  const int64_t share = ceil_div(c.count, threads);
  c.by_planes = threads > 1 && u_bytes > l2 / 4 && share < 40;
  c.block_tiles = c.by_planes ? c.count : ceil_div(share, ceil_div(share, most));
  return c;
}

// A block of output channels; its packed part is bias[width], then
// [matrices][k][width].
struct Block {
  int vecs;
  int64_t first_c, width, channels, packed;
};

Block block_at(const WinogradVariant& v, const ConvProblem& p, const Cut& c, int64_t index) {
  const int64_t first_vec = index * 2;
  Block b{};
  b.vecs = next_block_vecs(c.vecs - first_vec);
  b.first_c = first_vec * c.tiles->lanes;
  b.width = b.vecs * c.tiles->lanes;
  b.channels = std::min(b.width, p.shape.out_c - b.first_c);
  b.packed = b.first_c * (1 + v.matrices * c.k);
  return b;
}

// Planes are set apart by a cache line, lest a power of two put all of a tile
// into the same cache set.
struct Buffers {
  float* v;
  float* m;  // [block, or 1][planes][tiles][width]
  float* zeros;
};

int64_t v_plane(const Cut& c) { return c.block_tiles * c.row + 16; }
int64_t m_plane(const Cut& c, int64_t width) { return c.block_tiles * width + 16; }
int64_t m_floats(const WinogradVariant& v, const Cut& c) {
  return v.planes * (c.by_planes ? c.block_tiles * c.vecs * c.tiles->lanes + 16 * c.blocks
                                 : m_plane(c, std::min<int64_t>(c.vecs, 3) * c.tiles->lanes));
}
int64_t buffer_floats(const WinogradVariant& v, const Cut& c, const ConvProblem& p) {
  return round_up(v.planes * v_plane(c) + m_floats(v, c) + p.shape.in_c * v.column_pixels, 16);
}

struct Run {
  const WinogradVariant& v;
  const ConvProblem& p;
  const ConvArgs& args;
  Cut cut;
  void (*input)(const WinogradInput&);
  void (*output)(const WinogradOutput&);

  Buffers buffers(int worker) const {
    float* base = static_cast<float*>(args.scratch) + worker * buffer_floats(v, cut, p);
    float* m = base + v.planes * v_plane(cut);
    const Buffers b = {base, m, m + m_floats(v, cut)};
    std::fill_n(b.zeros, p.shape.in_c * v.column_pixels, 0.0f);
    return b;
  }
};

struct TilePlace {
  int64_t n, y, x;  // picture and first output pixel
};

TilePlace place_of(const Cut& c, int64_t tile) {
  const int64_t in_picture = tile % (c.tiles_y * c.tiles_x);
  return {tile / (c.tiles_y * c.tiles_x), in_picture / c.tiles_x * kWinogradTile,
          in_picture % c.tiles_x * kWinogradTile};
}

// Tile number `tile` of the picture into place `slot` of V.
void input_tile(const Run& r, const Buffers& b, int64_t tile, int64_t slot) {
  const ConvShape& s = r.p.shape;
  const TilePlace at = place_of(r.cut, tile);
  const int64_t y = at.y * s.stride_h - s.pad_top, x = at.x * s.stride_w - s.pad_left;
  const int64_t rows = r.v.patch_rows, cols = r.v.patch_cols, unit = r.v.column_pixels;
  const float* picture =
      static_cast<const float*>(r.args.input) + at.n * s.in_h * s.in_w * r.p.in_stride;
  const float* pixels[kMaxPatchPointers];
  WinogradInput in = {.first = picture + (y * s.in_w + x) * r.p.in_stride,
                      .row_step = s.in_w * r.p.in_stride,
                      .pixel_step = r.p.in_stride,
                      .pixels = nullptr,
                      .channels = s.in_c,
                      .v = b.v + slot * r.cut.row,
                      .plane = v_plane(r.cut)};
  if (y < 0 || x < 0 || y + rows > s.in_h || x + cols * unit > s.in_w) {
    for (int64_t i = 0; i < rows; ++i) {
      const bool inside_y = y + i >= 0 && y + i < s.in_h;
      for (int64_t j = 0; j < cols; ++j) {
        const int64_t px = x + j * unit;
        pixels[i * cols + j] = inside_y && px >= 0 && px < s.in_w
                                   ? picture + ((y + i) * s.in_w + px) * r.p.in_stride
                                   : b.zeros;
      }
    }
    in.pixels = pixels;
  }
  r.input(in);
}

// One plane's product: `tiles` rows of V with the block's U.
void multiply_plane(const Run& r, const Buffers& b, const Block& block, int plane, int64_t tiles,
                    float* m) {
  const int64_t matrix = r.v.matrix_of(plane);
  const float* u = static_cast<const float*>(r.args.packed) + block.packed +
                   block.width * (1 + matrix * r.cut.k);
  const int64_t parts = ceil_div(tiles, r.cut.tiles->max_rows[block.vecs]);
  const int64_t shortest = tiles / parts, longer = tiles % parts;
  const int64_t row_bytes = r.cut.row * int64_t{sizeof(float)};
  GemmTile tile = {.a = reinterpret_cast<const std::byte*>(b.v + plane * v_plane(r.cut)),
                   .a_row = row_bytes,
                   .k = r.cut.k,
                   .b = u,
                   .out = m + plane * m_plane(r.cut, block.width),
                   .out_row = block.width};
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t rows = shortest + (part < longer ? 1 : 0);
    r.cut.tiles->fn[block.vecs][rows](tile);
    tile.a += rows * row_bytes;
    tile.out += rows * block.width;
  }
}

void output_tile(const Run& r, const Block& block, int64_t tile, const float* m) {
  const ConvShape& s = r.p.shape;
  const TilePlace at = place_of(r.cut, tile);
  const int shift = r.p.epilogue.residual == Residual::kBeforeActivationUpsampled2x ? 1 : 0;
  const int64_t residual_h = (s.out_h + shift) >> shift, residual_w = (s.out_w + shift) >> shift;
  const float* residual = static_cast<const float*>(r.args.residual);
  if (residual) {
    const int64_t pixel = (at.n * residual_h + (at.y >> shift)) * residual_w + (at.x >> shift);
    residual += pixel * r.p.residual_stride + block.first_c;
  }
  r.output({.m = m,
            .plane = m_plane(r.cut, block.width),
            .bias = static_cast<const float*>(r.args.packed) + block.packed,
            .channels = block.channels,
            .output = static_cast<float*>(r.args.output) +
                      ((at.n * s.out_h + at.y) * s.out_w + at.x) * r.p.out_stride + block.first_c,
            .output_row = s.out_w * r.p.out_stride,
            .output_pixel = r.p.out_stride,
            .residual = residual,
            .residual_row = residual_w * r.p.residual_stride,
            .residual_pixel = r.p.residual_stride,
            .rows = std::min(kWinogradTile, s.out_h - at.y),
            .cols = std::min(kWinogradTile, s.out_w - at.x),
            .shift = shift,
            .activation = r.p.epilogue.activation});
}

// Each worker takes blocks of tiles through all three steps.
void run_by_tiles(const Run& r, ThreadPool& pool) {
  pool.parallel_ranges(r.cut.count, [&](int64_t begin, int64_t end, int worker) {
    const Buffers b = r.buffers(worker);
    const int64_t blocks = ceil_div(end - begin, r.cut.block_tiles);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t first = begin + (end - begin) * i / blocks,
                    tiles = begin + (end - begin) * (i + 1) / blocks - first;
      for (int64_t t = 0; t < tiles; ++t) input_tile(r, b, first + t, t);
      for (int64_t o = 0; o < r.cut.blocks; ++o) {
        const Block block = block_at(r.v, r.p, r.cut, o);
        for (int plane = 0; plane < r.v.planes; ++plane)
          multiply_plane(r, b, block, plane, tiles, b.m);
        for (int64_t t = 0; t < tiles; ++t) output_tile(r, block, first + t, b.m + t * block.width);
      }
    }
  });
}

// All tiles at once; each step is divided anew, with a barrier between.
void run_by_planes(const Run& r, ThreadPool& pool) {
  const Buffers b = r.buffers(0);
  const auto m_of = [&](const Block& block, int64_t index) {
    return b.m + r.v.planes * (block.first_c * r.cut.block_tiles + 16 * index);
  };
  pool.parallel_for(r.cut.count, [&](int64_t tile, int) { input_tile(r, b, tile, tile); });
  pool.parallel_for(r.cut.blocks * r.v.planes, [&](int64_t task, int) {
    const int64_t index = task / r.v.planes;
    const Block block = block_at(r.v, r.p, r.cut, index);
    multiply_plane(r, b, block, static_cast<int>(task % r.v.planes), r.cut.count,
                   m_of(block, index));
  });
  pool.parallel_for(r.cut.count * r.cut.blocks, [&](int64_t task, int) {
    const int64_t tile = task / r.cut.blocks, index = task % r.cut.blocks;
    const Block block = block_at(r.v, r.p, r.cut, index);
    output_tile(r, block, tile, m_of(block, index) + tile * block.width);
  });
}

}  // namespace

// Products as in conv_igemm.cc; transforms as measured; U once from memory and `readings` times
// from a cache, at 8 bytes a cycle. Threads do not speed up the memory where U is large.
double winograd_cost(const WinogradVariant& v, const ConvProblem& p, int threads) {
  const Cut c = make_cut(v, p, threads);
  const double tiles = static_cast<double>(c.count), vecs = static_cast<double>(c.vecs),
               k = static_cast<double>(c.k);
  const double products = tiles * v.planes * k * vecs / 2 / 0.92;
  const double in_vecs = static_cast<double>(c.row / c.tiles->lanes);
  const double transforms = tiles * (in_vecs * v.input_cycles + vecs * (v.output_cycles + 16 * 12));
  const auto u_bytes = static_cast<double>(winograd_packed_bytes(v, p));
  const double readings = c.by_planes ? 1
                                      : std::max(static_cast<double>(threads),
                                                 tiles / static_cast<double>(c.block_tiles));
  const bool large = u_bytes > 4 * static_cast<double>(l2_cache_bytes());
  return (products + transforms + readings * u_bytes / 8) / threads +
         u_bytes / 8 / (large ? 1 : threads);
}

size_t winograd_packed_bytes(const WinogradVariant& v, const ConvProblem& p) {
  const Cut c = make_cut(v, p, 1);
  return static_cast<size_t>(c.vecs * c.tiles->lanes * (1 + v.matrices * c.k)) * sizeof(float);
}

void winograd_pack(const WinogradVariant& v, const ConvProblem& p, const float* weights,
                   const float* bias, void* packed) {
  const Cut c = make_cut(v, p, 1);
  const int64_t per_channel = p.shape.in_c * p.shape.kernel_h * p.shape.kernel_w;
  for (int64_t index = 0; index < c.blocks; ++index) {
    const Block block = block_at(v, p, c, index);
    float* to = static_cast<float*>(packed) + block.packed;
    std::fill_n(to, block.width * (1 + v.matrices * c.k), 0.0f);
    for (int64_t o = 0; o < block.channels; ++o) {
      to[o] = bias ? bias[block.first_c + o] : 0.0f;
      for (int64_t k = 0; k < c.k; ++k) {
        double elements[kMaxWinogradPlanes];
        v.weights(p, weights + (block.first_c + o) * per_channel, k, elements);
        for (int64_t m = 0; m < v.matrices; ++m) {
          to[block.width * (1 + m * c.k + k) + o] = static_cast<float>(elements[m]);
        }
      }
    }
  }
}

size_t winograd_scratch_bytes(const WinogradVariant& v, const ConvProblem& p, int threads) {
  const Cut c = make_cut(v, p, threads);
  return static_cast<size_t>(buffer_floats(v, c, p) * (c.by_planes ? 1 : threads)) * sizeof(float);
}

void winograd_run(const WinogradVariant& v, const ConvProblem& p, const ConvArgs& args,
                  ThreadPool& pool) {
  const WinogradFns& fns = *v.fns[static_cast<int>(p.isa)];
  const int at = p.epilogue.residual == Residual::kNone              ? 0
                 : p.epilogue.residual == Residual::kAfterActivation ? 2
                                                                     : 1;
  const Run r = {v,         p,
                 args,      make_cut(v, p, pool.threads()),
                 fns.input, fns.output[at][static_cast<int>(p.epilogue.activation.kind)]};
  r.cut.by_planes ? run_by_planes(r, pool) : run_by_tiles(r, pool);
}

}  // namespace ferry::cpu
