// Convolution as a matrix product whose left matrix is never built: register tiles (gemm_tile.h)
// read the pixels in place. The idea is that of Dukhan, "The Indirect Convolution Algorithm" (arXiv
// 1907.02129); instead of its pointers, a tile is a piece of one output row, so its pixels lie at a
// constant distance for every tap:
//
//   - Taps above or below the picture are skipped. A tile that meets the left or right border reads
//   a copy of its
//     pixels with zeros around (a "patch"); they are few.
//   - Where the input's pixels are dense (and in every patch), a row of taps is one run of kernel_w
//   * in_c elements: the
//     6x6 first layer has runs of 18 instead of 3.
//   - Elements come in groups of four bytes (dot.h). Weights are packed by runs, each filled up to
//   whole groups with zeros, so a run may read up to 3 bytes past its end. Pixels that are no whole
//   groups can only be read in runs.
//   - Padding is the zero point. Where that is not 0, no tap is skipped: the rows above and below
//   the picture come from patches too.
//   - A 1x1 convolution of stride 1 sees the whole picture as one row.
//   - Rows are cut into equal pieces, so 20 pixels are two tiles of 10 rather than 14 and 6.
//
// Loops, outermost first: workers take ranges of tiles; a range is done in chunks whose input stays
// in L2; for each block of output channels (its weights stay in L1 or L2), every tile of the chunk.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/finish.h"
#include "backends/cpu/kernels/gemm_tile.h"

namespace ferry::cpu {
namespace {

constexpr int64_t kGroup = 4;  // bytes
constexpr int64_t kSumsBytes =
    4096;  // one tile's sums: at most 28 x 1 or 14 x 2 or 9 x 3 vectors of 16

// How a problem is cut up. Cheap to make, so every call makes its own. Distances in the input are
// bytes.
struct Cut {
  const GemmTiles* tiles;
  int64_t pixel, channels;         // bytes from a pixel to the next; of a pixel's channels
  int64_t tap;                     // bytes of a pixel's channels of one group
  bool whole_groups;               // `tap` is; else taps are read in runs only
  bool flat;                       // one row of batch * out_h * out_w pixels
  int64_t rows;                    // output rows; 1 when flat
  int64_t length;                  // pixels in a row
  int64_t pieces;                  // tiles in a row
  int64_t max_tile;                // pixels in the longest tile
  int64_t group_vecs;              // column vectors a group
  int64_t group_blocks;            // column blocks a group
  int64_t run_k;                   // groups of four bytes in a row of taps
  int64_t overrun;                 // bytes that the last of them lies past the run's end
  int64_t column_k;                // 4-byte words a column takes in the packed weights
  int64_t patch_row, patch_bytes;  // of the longest tile
  int64_t chunk_tiles, chunk_patches;
};

int64_t header_words(const ConvProblem& p) { return p.weight == DType::kS8 ? 3 : 1; }

bool is_whole(const ConvProblem& p) {
  return p.shape.in_c_per_group() * element_bytes(p.input.dtype) % kGroup == 0;
}

bool is_flat(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 &&
         s.pad_top == 0 && s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w &&
         p.epilogue.residual != Residual::kBeforeActivationUpsampled2x && is_whole(p);
}

int64_t count_blocks(int64_t vecs) { return vecs == 1 ? 1 : vecs / 2; }

Cut make_cut(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  const int64_t size = element_bytes(p.input.dtype);
  Cut c{};
  c.tiles = &gemm_tiles(p.isa, p.input.dtype);
  c.pixel = p.in_stride * size;
  c.channels = s.in_c * size;
  c.tap = s.in_c_per_group() * size;
  c.whole_groups = is_whole(p);
  c.flat = is_flat(p);
  c.rows = c.flat ? 1 : s.batch * s.out_h;
  c.length = c.flat ? s.batch * s.out_h * s.out_w : s.out_w;
  c.group_vecs = ceil_div(s.out_c / s.groups, c.tiles->lanes);
  c.group_blocks = count_blocks(c.group_vecs);
  c.pieces = ceil_div(c.length, preferred_rows(*c.tiles, c.group_vecs));
  c.max_tile = ceil_div(c.length, c.pieces);
  c.run_k = ceil_div(s.kernel_w * c.tap, kGroup);
  c.overrun = c.run_k * kGroup - s.kernel_w * c.tap;
  c.column_k = header_words(p) + s.kernel_h * c.run_k;
  c.patch_row =
      round_up(((c.max_tile - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1) * c.channels +
                   c.overrun,
               kGroup);
  c.patch_bytes = c.flat ? 0 : round_up(s.kernel_h * c.patch_row, 64);

  const int64_t tile_bytes = c.max_tile * s.stride_w * s.stride_h * c.channels +
                             c.patch_bytes * std::min<int64_t>(c.pieces, 2) / c.pieces;
  c.chunk_tiles = std::clamp<int64_t>(l2_cache_bytes() / 4 / tile_bytes, 1, c.rows * c.pieces);
  c.chunk_patches = c.flat         ? 0
                    : c.pieces < 3 ? c.chunk_tiles
                                   : 2 * ceil_div(c.chunk_tiles, c.pieces) + 2;
  return c;
}

// One tile's place in the operands: bytes in the input, elements from the beginnings of the others.
struct Place {
  const std::byte* a;
  int64_t a_row, a_tap_y, a_tap_x;
  int64_t first_tap_y, taps_y;
  int64_t pixels;
  int64_t output, residual, x;
};

struct Scratch {
  float* sums;
  std::byte* patches;
  Place* places;
};

int64_t worker_bytes(const Cut& c) {
  const int64_t places = round_up(c.chunk_tiles * int64_t{sizeof(Place)}, 64);
  return kSumsBytes + c.chunk_patches * c.patch_bytes + places;
}

Scratch scratch_of(const Cut& c, void* scratch, int worker) {
  std::byte* base = static_cast<std::byte*>(scratch) + worker * worker_bytes(c);
  std::byte* patches = base + kSumsBytes;
  return {reinterpret_cast<float*>(base), patches,
          reinterpret_cast<Place*>(patches + c.chunk_patches * c.patch_bytes)};
}

void fill(std::byte* to, int64_t bytes, std::byte value) {
  std::memset(to, static_cast<int>(value), static_cast<size_t>(bytes));
}

// Copies pixels [x, x + count) of an input row to a dense patch row; pixels outside the picture are
// `zero`s, the row's overrun 0.
void copy_patch_row(const ConvProblem& p, const Cut& c, const std::byte* row, int64_t x,
                    int64_t count, std::byte zero, std::byte* to) {
  const int64_t left = std::clamp<int64_t>(-x, 0, count);
  const int64_t inside = std::clamp<int64_t>(p.shape.in_w - x, left, count);
  fill(to, left * c.channels, zero);
  if (c.pixel == c.channels) {
    std::memcpy(to + left * c.channels, row + (x + left) * c.pixel,
                static_cast<size_t>((inside - left) * c.channels));
  } else {
    for (int64_t i = left; i < inside; ++i) {
      std::memcpy(to + i * c.channels, row + (x + i) * c.pixel, static_cast<size_t>(c.channels));
    }
  }
  fill(to + inside * c.channels, (count - inside) * c.channels, zero);
  fill(to + count * c.channels, c.overrun, std::byte{0});
}

// Walks the tiles of a problem in order. Divisions happen only where the walk begins: a tile may be
// as short as 200 cycles, and a division costs twenty.
class Walk {
 public:
  Walk(const ConvProblem& p, const Cut& c, const std::byte* input, int64_t index)
      : p_(p),
        c_(c),
        input_(input),
        zero_(p.input.dtype == DType::kU8 ? static_cast<std::byte>(p.input.zero_point)
                                          : std::byte{0}),
        row_(index / c.pieces),
        piece_(index % c.pieces) {
    shortest_ = c.length / c.pieces;
    longer_ = c.length % c.pieces;  // this many pieces, the first ones, are one pixel longer
    x_ = piece_ * shortest_ + std::min(piece_, longer_);
    n_ = row_ / p.shape.out_h;
    y_ = row_ % p.shape.out_h;
    begin_row();
  }

  // Puts the next tile's place; `patch` is free memory for its pixels. Returns whether that was
  // used.
  bool next(std::byte* patch, Place* place) {
    const ConvShape& s = p_.shape;
    const int64_t x = x_, pixels = shortest_ + (piece_ < longer_ ? 1 : 0);
    place->pixels = pixels;
    place->x = x;
    place->output = (row_ * c_.length + x) * p_.out_stride;
    place->residual = half_ == 1 ? (row_ * c_.length + x) * p_.residual_stride
                                 : residual_row_ + (x >> 1) * p_.residual_stride;
    const int64_t left = x * s.stride_w - s.pad_left;
    const int64_t span = (pixels - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
    const bool inside =
        readable_ && left >= 0 && (left + span) * c_.pixel + c_.overrun <= width_ * c_.pixel;
    if (inside) {
      place->first_tap_y = taps_.begin;
      place->taps_y = taps_.end - taps_.begin;
      place->a = first_row_ + left * c_.pixel;
      place->a_row = s.stride_w * c_.pixel;
      place->a_tap_y = tap_y_;
      place->a_tap_x = s.dilation_w * c_.pixel;
    } else {
      patch_tile(left, span, patch, place);
    }
    x_ += pixels;
    if (++piece_ == c_.pieces) end_row();
    return !inside;
  }

 private:
  void patch_tile(int64_t left, int64_t span, std::byte* patch, Place* place) const {
    const bool all_taps = zero_ != std::byte{0};  // a tap outside the picture counts
    place->first_tap_y = all_taps ? 0 : taps_.begin;
    place->taps_y = all_taps ? p_.shape.kernel_h : taps_.end - taps_.begin;
    for (int64_t t = 0; t < place->taps_y; ++t) {
      const int64_t tap = place->first_tap_y + t;
      std::byte* row = patch + t * c_.patch_row;
      if (tap >= taps_.begin && tap < taps_.end) {
        copy_patch_row(p_, c_, first_row_ + (tap - taps_.begin) * tap_y_, left, span, zero_, row);
      } else {
        fill(row, span * c_.channels + c_.overrun, zero_);
      }
    }
    place->a = patch;
    place->a_row = p_.shape.stride_w * c_.channels;
    place->a_tap_y = c_.patch_row;
    place->a_tap_x = p_.shape.dilation_w * c_.channels;
  }

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
    first_row_ = input_ + (n_ * s.in_h + top + taps_.begin * s.dilation_h) * s.in_w * c_.pixel;
    width_ = s.in_w;
    tap_y_ = s.dilation_h * s.in_w * c_.pixel;
    const bool all_taps = taps_.begin == 0 && taps_.end == s.kernel_h;
    readable_ = (c_.whole_groups || c_.pixel == c_.channels) && (all_taps || zero_ == std::byte{0});
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
  const std::byte* input_;
  const std::byte zero_;  // what padding is
  int64_t row_, piece_, x_ = 0, n_ = 0, y_ = 0;
  int64_t shortest_ = 0, longer_ = 0;
  // Of the row:
  const std::byte* first_row_ = nullptr;  // the input row of the first tap inside the picture
  int64_t width_ = 0, tap_y_ = 0, residual_row_ = 0, half_ = 1;
  bool readable_ = true;  // tiles away from the borders need no patch
  TapRange taps_ = {0, 0};
};

// A block of output channels: its packed weights are init[width] (the bias; of bytes: int32 init,
// float multiplier, float bias), then [kernel_h][run_k][width] groups.
struct Block {
  int vecs;
  int64_t width;     // vecs * lanes
  int64_t first_c;   // output channel
  int64_t first_in;  // bytes of a pixel before its group's channels
  int64_t channels;  // written; at most width
  int64_t packed;    // offset in 4-byte words
};

Block block_at(const ConvProblem& p, const Cut& c, int64_t index) {
  const int64_t lanes = c.tiles->lanes, group_c = p.shape.out_c / p.shape.groups;
  const int64_t group = index / c.group_blocks, in_group = index % c.group_blocks;
  const int64_t first_vec = in_group * 2;  // only the last block of a group is not a pair
  Block b{};
  b.vecs = next_block_vecs(c.group_vecs - first_vec);
  b.width = b.vecs * lanes;
  b.first_c = group * group_c + first_vec * lanes;
  b.first_in = group * c.tap;
  b.channels = std::min(b.width, group_c - first_vec * lanes);
  b.packed = (group * c.group_vecs + first_vec) * lanes * c.column_k;
  return b;
}

struct Run {
  const ConvProblem& p;
  const ConvArgs& args;
  Cut cut;
  EpilogueFn epilogue;  // of floats to floats
  FinishFn finish;      // of anything else; else null
  bool plain;  // nothing follows the sums: whole vectors may be written straight to the output
};

// One block of output channels, with everything that its tiles share.
struct BlockRun {
  const Run& r;
  Block block;
  bool direct;  // the tile writes to the output itself
  const float* weights;
  std::byte* output;
  const std::byte* residual;
  GemmTile tile;
  EpilogueRows rows;
  FinishRows finish;
};

BlockRun begin_block(const Run& r, const Block& block, float* sums) {
  const ConvProblem& p = r.p;
  const float* packed = static_cast<const float*>(r.args.packed) + block.packed;
  const int64_t out_size = element_bytes(p.output.dtype);
  const int64_t residual_size = element_bytes(p.residual.dtype);
  const auto* residual = static_cast<const std::byte*>(r.args.residual);
  const bool direct = r.plain && block.channels == block.width;
  BlockRun b = {.r = r,
                .block = block,
                .direct = direct,
                .weights = packed + header_words(p) * block.width,
                .output = static_cast<std::byte*>(r.args.output) + block.first_c * out_size,
                .residual = residual ? residual + block.first_c * residual_size : nullptr,
                .tile = {},
                .rows = {},
                .finish = {}};
  b.tile.init = packed;
  b.tile.out = sums;
  b.tile.out_row = direct ? p.out_stride : block.width;
  if (r.finish) {
    b.finish.source = reinterpret_cast<const std::byte*>(sums);
    b.finish.source_step = block.width * int64_t{sizeof(float)};
    if (p.weight == DType::kS8) {
      b.finish.multiplier = packed + block.width;
      b.finish.bias = packed + 2 * block.width;
    }
    b.finish.output_step = p.out_stride * out_size;
    b.finish.output_storage = p.output;
    b.finish.residual_step = p.residual_stride * residual_size;
    b.finish.residual_storage = p.residual;
    b.finish.cols = block.channels;
    b.finish.mode = p.epilogue.residual;
    b.finish.activation = p.epilogue.activation;
  } else {
    b.rows.sums = sums;
    b.rows.sums_step = block.width;
    b.rows.output_step = p.out_stride;
    b.rows.residual_step = p.residual_stride;
    b.rows.cols = block.channels;
    b.rows.mode = p.epilogue.residual;
    b.rows.activation = p.epilogue.activation;
  }
  return b;
}

// Pixels [first, first + count) of a tile.
void run_pixels(BlockRun& b, const Place& place, int64_t first, int64_t count) {
  const ConvProblem& p = b.r.p;
  const Cut& c = b.r.cut;
  const bool joined = place.a_tap_x == c.tap;
  std::byte* output =
      b.output + (place.output + first * p.out_stride) * element_bytes(p.output.dtype);
  b.tile.a = place.a + b.block.first_in + first * place.a_row;
  b.tile.a_row = place.a_row;
  b.tile.taps_y = place.taps_y;
  b.tile.a_tap_y = place.a_tap_y;
  b.tile.taps_x = joined ? 1 : p.shape.kernel_w;
  b.tile.a_tap_x = place.a_tap_x;
  b.tile.k = joined ? c.run_k : c.tap / kGroup;
  b.tile.b = b.weights + b.block.width * place.first_tap_y * c.run_k;
  if (b.direct) b.tile.out = reinterpret_cast<float*>(output);
  c.tiles->fn[b.block.vecs][count](b.tile);
  if (b.direct) return;
  const std::byte* residual = nullptr;
  if (b.residual) {
    const int64_t shift = p.epilogue.residual == Residual::kBeforeActivationUpsampled2x ? 1 : 0;
    const int64_t pixels = ((place.x + first) >> shift) - (place.x >> shift);
    residual = b.residual +
               (place.residual + pixels * p.residual_stride) * element_bytes(p.residual.dtype);
  }
  if (b.r.finish) {
    b.finish.output = output;
    b.finish.residual = residual;
    b.finish.rows = count;
    b.finish.x = place.x + first;
    return b.r.finish(b.finish);
  }
  b.rows.output = reinterpret_cast<float*>(output);
  b.rows.residual = reinterpret_cast<const float*>(residual);
  b.rows.rows = count;
  b.rows.x = place.x + first;
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
  Walk walk(r.p, r.cut, static_cast<const std::byte*>(r.args.input), tiles.first);
  int64_t left = tiles.second - tiles.first;
  while (left > 0) {
    int64_t count = 0, patches = 0;
    while (left > 0 && count < r.cut.chunk_tiles && (r.cut.flat || patches < r.cut.chunk_patches)) {
      std::byte* patch = scratch.patches + patches * r.cut.patch_bytes;
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
  const bool floats =
      p.weight != DType::kS8 && p.output.dtype == DType::kF32 && p.residual.dtype == DType::kF32;
  const Run r = {.p = p,
                 .args = args,
                 .cut = make_cut(p),
                 .epilogue = floats ? epilogue_fn(p.isa, p.epilogue) : nullptr,
                 .finish = floats ? nullptr : finish_fn(p.isa, p.epilogue),
                 .plain = floats && p.epilogue == Epilogue{}};
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
  return vectors * (static_cast<double>(c.column_k - header_words(p)) / 2 / 0.95 + 12) / threads;
}

size_t packed_bytes(const ConvProblem& p) {
  const Cut c = make_cut(p);
  return static_cast<size_t>(p.shape.groups * c.group_vecs * c.tiles->lanes * c.column_k) *
         sizeof(float);
}

// The weights of output channel `o`, rounded and in the order of a column: [kernel_h][run_k]
// groups. Returns the sum of the rounded bytes.
int64_t pack_column(const ConvProblem& p, const Cut& c, const float* weights, int64_t o,
                    std::byte* column) {
  const int64_t taps = p.shape.kernel_h * p.shape.kernel_w, in_c = p.shape.in_c_per_group();
  const Storage storage = {p.weight, p.weight == DType::kS8 ? p.weight_scales[o] : 1.0f};
  const int64_t size = element_bytes(p.weight);
  int64_t sum = 0;
  fill(column, p.shape.kernel_h * c.run_k * kGroup, std::byte{0});
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t ky = tap / p.shape.kernel_w, kx = tap % p.shape.kernel_w;
    std::byte* to = column + ky * c.run_k * kGroup + kx * in_c * size;
    for (int64_t i = 0; i < in_c; ++i, to += size) {
      store_element(storage, to, weights[(o * in_c + i) * taps + tap]);
      if (p.weight == DType::kS8) sum += static_cast<int8_t>(*to);
    }
  }
  return sum;
}

void pack(const ConvProblem& p, const float* weights, const float* bias, void* packed) {
  const Cut c = make_cut(p);
  const int64_t groups = p.shape.kernel_h * c.run_k;
  std::vector<std::byte> column(static_cast<size_t>(groups * kGroup));
  std::memset(packed, 0, packed_bytes(p));
  for (int64_t index = 0; index < c.group_blocks * p.shape.groups; ++index) {
    const Block b = block_at(p, c, index);
    float* header = static_cast<float*>(packed) + b.packed;
    float* first = header + header_words(p) * b.width;
    for (int64_t j = 0; j < b.channels; ++j) {
      const int64_t o = b.first_c + j;
      const int64_t sum = pack_column(p, c, weights, o, column.data());
      for (int64_t g = 0; g < groups; ++g)
        std::memcpy(first + g * b.width + j, &column[static_cast<size_t>(g * kGroup)], kGroup);
      if (p.weight == DType::kS8) {
        const auto init = static_cast<int32_t>(-sum * p.input.zero_point);
        std::memcpy(header + j, &init, sizeof init);
        header[b.width + j] = p.input.scale * p.weight_scales[o];
      }
      header[(header_words(p) - 1) * b.width + j] = bias ? bias[o] : 0.0f;
    }
  }
}

// Sums of bytes must fit in int32: 255 * 127 each.
constexpr int64_t kMostProducts = INT32_MAX / (255 * 128);

const char* refuse(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  if (!is_whole(p) && s.groups != 1) return "groups of channels that are no whole words";
  if (!is_whole(p) && s.dilation_w != 1) return "dilated taps that are no whole words";
  if (p.weight == DType::kS8 && s.weights() / s.out_c > kMostProducts)
    return "sums that may exceed 32 bits";
  return nullptr;
}

size_t scratch_bytes(const ConvProblem& p, int threads) {
  return static_cast<size_t>(worker_bytes(make_cut(p)) * threads);
}

}  // namespace

const ConvTactic conv_igemm = {
    .name = "igemm",
    .refuse = refuse,
    .cost = cost,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .prepare = nullptr,
    .run = run,
};

}  // namespace ferry::cpu
