// Convolution as a matrix product whose left matrix is never built: register tiles (gemm_tile.h)
// read the pixels in place. The idea is that of Dukhan, "The Indirect Convolution Algorithm" (arXiv
// 1907.02129); instead of its pointers, a tile is a piece of one output row, so its pixels lie at a
// constant distance for every tap:
//
//   - Taps above or below the picture are skipped. A tile that meets the left or right border reads
//   a copy of its
//     pixels with zeros around (a "patch"); they are few.
//   - Where the input's pixels are dense (and in every patch), a row of taps is one run of kernel_w
//   * in_c floats: the
//     6x6 first layer has runs of 18 instead of 3.
//   - A 1x1 convolution of stride 1 sees the whole picture as one row.
//   - Rows are cut into equal pieces, so 20 pixels are two tiles of 10 rather than 14 and 6.
//
// Loops, outermost first: workers take ranges of tiles; a range is done in chunks whose input stays
// in L2; for each block of output channels (its weights stay in L1 or L2), every tile of the chunk.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/gemm_tile.h"

namespace ferry::cpu {
namespace {

constexpr int64_t kSumsFloats =
    1024;  // one tile's sums: at most 28 x 1 or 14 x 2 or 9 x 3 vectors of 16

// How a problem is cut up. Cheap to make, so every call makes its own.
struct Cut {
  const GemmTiles* tiles;
  bool flat;                        // one row of batch * out_h * out_w pixels
  int64_t rows;                     // output rows; 1 when flat
  int64_t length;                   // pixels in a row
  int64_t pieces;                   // tiles in a row
  int64_t max_tile;                 // pixels in the longest tile
  int64_t group_vecs;               // column vectors a group
  int64_t group_blocks;             // column blocks a group
  int64_t taps_k;                   // floats a column has weights for
  int64_t patch_row, patch_floats;  // of the longest tile
  int64_t chunk_tiles, chunk_patches;
};

bool is_flat(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 &&
         s.pad_top == 0 && s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w &&
         p.epilogue.residual != Residual::kBeforeActivationUpsampled2x;
}

int64_t count_blocks(int64_t vecs) { return vecs == 1 ? 1 : vecs / 2; }

Cut make_cut(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  Cut c{};
  c.tiles = &gemm_tiles(p.isa);
  c.flat = is_flat(p);
  c.rows = c.flat ? 1 : s.batch * s.out_h;
  c.length = c.flat ? s.batch * s.out_h * s.out_w : s.out_w;
  c.group_vecs = ceil_div(s.out_c / s.groups, c.tiles->lanes);
  c.group_blocks = count_blocks(c.group_vecs);
  c.pieces = ceil_div(c.length, preferred_rows(*c.tiles, c.group_vecs));
  c.max_tile = ceil_div(c.length, c.pieces);
  c.taps_k = s.kernel_h * s.kernel_w * s.in_c_per_group();
  c.patch_row = ((c.max_tile - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1) * s.in_c;
  c.patch_floats = c.flat ? 0 : round_up(s.kernel_h * c.patch_row, 16);

  const int64_t tile_floats = c.max_tile * s.stride_w * s.stride_h * s.in_c +
                              c.patch_floats * std::min<int64_t>(c.pieces, 2) / c.pieces;
  const int64_t tile_bytes = tile_floats * int64_t{sizeof(float)};
  c.chunk_tiles = std::clamp<int64_t>(l2_cache_bytes() / 4 / tile_bytes, 1, c.rows * c.pieces);
  c.chunk_patches = c.flat         ? 0
                    : c.pieces < 3 ? c.chunk_tiles
                                   : 2 * ceil_div(c.chunk_tiles, c.pieces) + 2;
  return c;
}

// One tile's place in the operands, in floats from their beginnings.
struct Place {
  const float* a;
  int64_t a_row, a_tap_y, a_tap_x;
  int64_t first_tap_y, taps_y;
  int64_t pixels;
  int64_t output, residual, x;
};

struct Scratch {
  float* sums;
  float* patches;
  Place* places;
};

int64_t scratch_floats(const Cut& c) {
  const int64_t places =
      round_up(c.chunk_tiles * int64_t{sizeof(Place)}, 64) / int64_t{sizeof(float)};
  return kSumsFloats + c.chunk_patches * c.patch_floats + places;
}

Scratch scratch_of(const Cut& c, void* scratch, int worker) {
  float* base = static_cast<float*>(scratch) + worker * scratch_floats(c);
  float* patches = base + kSumsFloats;
  return {base, patches, reinterpret_cast<Place*>(patches + c.chunk_patches * c.patch_floats)};
}

// Copies pixels [x, x + count) of an input row to a dense patch row; pixels outside the picture are
// zeros.
void copy_patch_row(const ConvProblem& p, const float* row, int64_t x, int64_t count, float* to) {
  const int64_t c = p.shape.in_c;
  const int64_t left = std::clamp<int64_t>(-x, 0, count);
  const int64_t inside = std::clamp<int64_t>(p.shape.in_w - x, left, count);
  std::fill(to, to + left * c, 0.0f);
  if (p.in_stride == c) {
    std::memcpy(to + left * c, row + (x + left) * c,
                static_cast<size_t>((inside - left) * c) * sizeof(float));
  } else {
    for (int64_t i = left; i < inside; ++i) {
      std::memcpy(to + i * c, row + (x + i) * p.in_stride, static_cast<size_t>(c) * sizeof(float));
    }
  }
  std::fill(to + inside * c, to + count * c, 0.0f);
}

// Walks the tiles of a problem in order. Divisions happen only where the walk begins: a tile may be
// as short as 200 cycles, and a division costs twenty.
class Walk {
 public:
  Walk(const ConvProblem& p, const Cut& c, const float* input, int64_t index)
      : p_(p), c_(c), input_(input), row_(index / c.pieces), piece_(index % c.pieces) {
    shortest_ = c.length / c.pieces;
    longer_ = c.length % c.pieces;  // this many pieces, the first ones, are one pixel longer
    x_ = piece_ * shortest_ + std::min(piece_, longer_);
    n_ = row_ / p.shape.out_h;
    y_ = row_ % p.shape.out_h;
    begin_row();
  }

  // Puts the next tile's place; `patch` is free memory for its pixels. Returns whether that was
  // used.
  bool next(float* patch, Place* place) {
    const ConvShape& s = p_.shape;
    const int64_t x = x_, pixels = shortest_ + (piece_ < longer_ ? 1 : 0);
    place->pixels = pixels;
    place->x = x;
    place->output = (row_ * c_.length + x) * p_.out_stride;
    place->residual = half_ == 1 ? (row_ * c_.length + x) * p_.residual_stride
                                 : residual_row_ + (x >> 1) * p_.residual_stride;
    place->first_tap_y = taps_.begin;
    place->taps_y = taps_.end - taps_.begin;
    const int64_t left = x * s.stride_w - s.pad_left;
    const int64_t span = (pixels - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
    const bool inside = left >= 0 && left + span <= width_;
    if (inside) {
      place->a = first_row_ + left * p_.in_stride;
      place->a_row = s.stride_w * p_.in_stride;
      place->a_tap_y = tap_y_;
      place->a_tap_x = s.dilation_w * p_.in_stride;
    } else {
      for (int64_t t = 0; t < place->taps_y; ++t) {
        copy_patch_row(p_, first_row_ + t * tap_y_, left, span, patch + t * c_.patch_row);
      }
      place->a = patch;
      place->a_row = s.stride_w * s.in_c;
      place->a_tap_y = c_.patch_row;
      place->a_tap_x = s.dilation_w * s.in_c;
    }
    x_ += pixels;
    if (++piece_ == c_.pieces) end_row();
    return !inside;
  }

 private:
  void begin_row() {
    const ConvShape& s = p_.shape;
    if (c_.flat) {
      first_row_ = input_;
      width_ = c_.length;
      taps_ = {0, 1};
      return;
    }
    const int64_t top = y_ * s.stride_h - s.pad_top;
    taps_ = valid_taps(top, s.kernel_h, s.dilation_h, s.in_h);
    first_row_ = input_ + (n_ * s.in_h + top + taps_.begin * s.dilation_h) * s.in_w * p_.in_stride;
    width_ = s.in_w;
    tap_y_ = s.dilation_h * s.in_w * p_.in_stride;
    half_ = p_.epilogue.residual == Residual::kBeforeActivationUpsampled2x ? 2 : 1;
    if (half_ == 2) {
      const int64_t h = ceil_div(s.out_h, 2), w = ceil_div(s.out_w, 2);
      residual_row_ = (n_ * h + y_ / 2) * w * p_.residual_stride;
    }
  }

  void end_row() {
    piece_ = x_ = 0;
    ++row_;
    if (++y_ == p_.shape.out_h) {
      y_ = 0;
      ++n_;
    }
    begin_row();
  }

  const ConvProblem& p_;
  const Cut& c_;
  const float* input_;
  int64_t row_, piece_, x_ = 0, n_ = 0, y_ = 0;
  int64_t shortest_ = 0, longer_ = 0;
  // Of the row:
  const float* first_row_ = nullptr;  // the input row of the first tap inside the picture
  int64_t width_ = 0, tap_y_ = 0, residual_row_ = 0, half_ = 1;
  TapRange taps_ = {0, 0};
};

// A block of output channels: its packed weights are init[width], then [kernel_h][kernel_w][in_c /
// groups][width].
struct Block {
  int vecs;
  int64_t width;       // vecs * lanes
  int64_t first_c;     // output channel
  int64_t first_in_c;  // of its group
  int64_t channels;    // written; at most width
  int64_t packed;      // offset in floats
};

Block block_at(const ConvProblem& p, const Cut& c, int64_t index) {
  const int64_t lanes = c.tiles->lanes, group_c = p.shape.out_c / p.shape.groups;
  const int64_t group = index / c.group_blocks, in_group = index % c.group_blocks;
  const int64_t first_vec = in_group * 2;  // only the last block of a group is not a pair
  Block b{};
  b.vecs = next_block_vecs(c.group_vecs - first_vec);
  b.width = b.vecs * lanes;
  b.first_c = group * group_c + first_vec * lanes;
  b.first_in_c = group * p.shape.in_c_per_group();
  b.channels = std::min(b.width, group_c - first_vec * lanes);
  b.packed = (group * c.group_vecs + first_vec) * lanes * (1 + c.taps_k);
  return b;
}

struct Run {
  const ConvProblem& p;
  const ConvArgs& args;
  Cut cut;
  EpilogueFn epilogue;
  bool plain;  // nothing follows the sums: whole vectors may be written straight to the output
};

// One block of output channels, with everything that its tiles share.
struct BlockRun {
  const Run& r;
  Block block;
  bool direct;  // the tile writes to the output itself
  const float* weights;
  float* output;
  const float* residual;
  GemmTile tile;
  EpilogueRows rows;
};

BlockRun begin_block(const Run& r, const Block& block, float* sums) {
  const float* packed = static_cast<const float*>(r.args.packed) + block.packed;
  const float* residual = static_cast<const float*>(r.args.residual);
  const bool direct = r.plain && block.channels == block.width;
  BlockRun b = {.r = r,
                .block = block,
                .direct = direct,
                .weights = packed + block.width,
                .output = static_cast<float*>(r.args.output) + block.first_c,
                .residual = residual ? residual + block.first_c : nullptr,
                .tile = {},
                .rows = {}};
  b.tile.init = packed;
  b.tile.out = sums;
  b.tile.out_row = direct ? r.p.out_stride : block.width;
  b.rows.sums = sums;
  b.rows.sums_step = block.width;
  b.rows.output_step = r.p.out_stride;
  b.rows.residual_step = r.p.residual_stride;
  b.rows.cols = block.channels;
  b.rows.mode = r.p.epilogue.residual;
  b.rows.activation = r.p.epilogue.activation;
  return b;
}

// Pixels [first, first + count) of a tile.
void run_pixels(BlockRun& b, const Place& place, int64_t first, int64_t count) {
  const ConvProblem& p = b.r.p;
  const int64_t in_c = p.shape.in_c_per_group();
  const bool joined = place.a_tap_x == in_c;
  float* output = b.output + place.output + first * p.out_stride;
  b.tile.a = place.a + b.block.first_in_c + first * place.a_row;
  b.tile.a_row = place.a_row;
  b.tile.taps_y = place.taps_y;
  b.tile.a_tap_y = place.a_tap_y;
  b.tile.taps_x = joined ? 1 : p.shape.kernel_w;
  b.tile.a_tap_x = place.a_tap_x;
  b.tile.k = joined ? p.shape.kernel_w * in_c : in_c;
  b.tile.b = b.weights + b.block.width * place.first_tap_y * p.shape.kernel_w * in_c;
  if (b.direct) b.tile.out = output;
  b.r.cut.tiles->fn[b.block.vecs][count](b.tile);
  if (b.direct) return;
  b.rows.output = output;
  b.rows.rows = count;
  b.rows.x = place.x + first;
  if (b.residual) {
    const int64_t shift = p.epilogue.residual == Residual::kBeforeActivationUpsampled2x ? 1 : 0;
    const int64_t pixels = (b.rows.x >> shift) - (place.x >> shift);
    b.rows.residual = b.residual + place.residual + pixels * p.residual_stride;
  }
  b.r.epilogue(b.rows);
}

void run_tile(BlockRun& b, const Place& place) {
  const int64_t max_rows = b.r.cut.tiles->max_rows[b.block.vecs];
  if (place.pixels <= max_rows) return run_pixels(b, place, 0, place.pixels);
  const int64_t parts = ceil_div(place.pixels, max_rows);  // a triple among pairs
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = place.pixels * part / parts;
    run_pixels(b, place, first, place.pixels * (part + 1) / parts - first);
  }
}

void run_tiles(const Run& r, std::pair<int64_t, int64_t> tiles, std::pair<int64_t, int64_t> blocks,
               int worker) {
  const Scratch scratch = scratch_of(r.cut, r.args.scratch, worker);
  Walk walk(r.p, r.cut, static_cast<const float*>(r.args.input), tiles.first);
  int64_t left = tiles.second - tiles.first;
  while (left > 0) {
    int64_t count = 0, patches = 0;
    while (left > 0 && count < r.cut.chunk_tiles && (r.cut.flat || patches < r.cut.chunk_patches)) {
      float* patch = scratch.patches + patches * r.cut.patch_floats;
      patches += walk.next(patch, &scratch.places[count++]);
      --left;
    }
    for (int64_t index = blocks.first; index < blocks.second; ++index) {
      BlockRun block = begin_block(r, block_at(r.p, r.cut, index), scratch.sums);
      for (int64_t t = 0; t < count; ++t) run_tile(block, scratch.places[t]);
    }
  }
}

// The share of `threads` that works when `tasks` equal tasks are dealt out.
double balance(int64_t tasks, int threads) {
  return static_cast<double>(tasks) / static_cast<double>(ceil_div(tasks, threads) * threads);
}

void run(const ConvProblem& p, const ConvArgs& args, ThreadPool& pool) {
  const Run r = {.p = p,
                 .args = args,
                 .cut = make_cut(p),
                 .epilogue = epilogue_fn(p.isa, p.epilogue),
                 .plain = p.epilogue == Epilogue{}};
  const int64_t tiles = r.cut.rows * r.cut.pieces, blocks = r.cut.group_blocks * p.shape.groups;
  if (balance(blocks, pool.threads()) > balance(tiles, pool.threads()) + 0.1) {
    pool.parallel_ranges(blocks, [&](int64_t begin, int64_t end, int worker) {
      run_tiles(r, {0, tiles}, {begin, end}, worker);
    });
  } else {
    pool.parallel_ranges(tiles, [&](int64_t begin, int64_t end, int worker) {
      run_tiles(r, {begin, end}, {0, blocks}, worker);
    });
  }
}

// Multiply-adds of whole vectors at two a cycle, and a little for each result.
double cost(const ConvProblem& p, int threads) {
  const Cut c = make_cut(p);
  const double vectors = static_cast<double>(p.shape.batch * p.shape.out_h * p.shape.out_w *
                                             c.group_vecs * p.shape.groups);
  return vectors * (static_cast<double>(c.taps_k) / 2 / 0.95 + 12) / threads;
}

size_t packed_bytes(const ConvProblem& p) {
  const Cut c = make_cut(p);
  return static_cast<size_t>(p.shape.groups * c.group_vecs * c.tiles->lanes * (1 + c.taps_k)) *
         sizeof(float);
}

void pack(const ConvProblem& p, const float* weights, const float* bias, void* packed) {
  const Cut c = make_cut(p);
  const int64_t taps = p.shape.kernel_h * p.shape.kernel_w, in_c = p.shape.in_c_per_group();
  for (int64_t index = 0; index < c.group_blocks * p.shape.groups; ++index) {
    const Block b = block_at(p, c, index);
    float* to = static_cast<float*>(packed) + b.packed;
    for (int64_t j = 0; j < b.width; ++j)
      *to++ = bias && j < b.channels ? bias[b.first_c + j] : 0.0f;
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t i = 0; i < in_c; ++i) {
        for (int64_t j = 0; j < b.width; ++j) {
          *to++ = j < b.channels ? weights[((b.first_c + j) * in_c + i) * taps + tap] : 0.0f;
        }
      }
    }
  }
}

size_t scratch_bytes(const ConvProblem& p, int threads) {
  return static_cast<size_t>(scratch_floats(make_cut(p)) * threads) * sizeof(float);
}

}  // namespace

const ConvTactic conv_igemm = {
    .name = "igemm",
    .refuse = refuse_not_f32,
    .cost = cost,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .prepare = nullptr,
    .run = run,
};

}  // namespace ferry::cpu
