// Maximum pooling is separable: first along each input row, kept in a ring of kernel_h rows, then
// down the columns of the ring. A 5x5 window costs 10 comparisons instead of 25. Channels go in
// blocks, so that the ring stays in L1 or L2.
#include "backends/cpu/kernels/pool.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/vec_narrow.h"

namespace ferry::cpu {
namespace {

struct PoolRow {
  const std::byte* input;
  Storage storage;
  int64_t input_step;  // bytes
  int64_t in_w, out_w, kernel, stride, pad, channels;
  float* sums;
  int64_t sums_step;
};
struct PoolColumn {
  const float* rows;  // [ring][row_floats]
  int64_t ring, row_floats, rows_step, first_row, count, out_w, channels;
  std::byte* output;
  Storage storage;
  int64_t output_step;  // bytes
};
struct PoolWindow {
  const float* input;
  int64_t row_step, pixel_step, h, w, channels;
  float scale;
  float* output;
};

}  // namespace
}  // namespace ferry::cpu

#define FERRY_KERNEL "backends/cpu/kernels/stored.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/pool.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {
namespace {

constexpr int64_t kChannelBlock = 64;

int64_t ring_floats(const PoolShape& s, int64_t out_w) {
  return s.kernel_h * out_w * kChannelBlock;
}

}  // namespace

size_t max_pool2d_scratch_bytes(const PoolShape& s, int64_t out_w, int threads) {
  return static_cast<size_t>(ring_floats(s, out_w) * threads) * sizeof(float);
}

void max_pool2d(const PoolShape& s, const StoredView& input, const StoredView& output,
                void* scratch, Isa isa, ThreadPool& pool) {
  const int64_t in_size = element_bytes(input.storage.dtype);
  const int64_t out_size = element_bytes(output.storage.dtype);
  static constexpr void (*kRow[])(const PoolRow&) = FERRY_BY_ISA(max_along_row);
  static constexpr void (*kColumn[])(const PoolColumn&) = FERRY_BY_ISA(max_along_column);
  const auto along_row = kRow[static_cast<int>(isa)];
  const auto along_column = kColumn[static_cast<int>(isa)];
  const int64_t row_floats = output.w * kChannelBlock;

  pool.parallel_ranges(output.batch * output.h, [&](int64_t begin, int64_t end, int worker) {
    float* ring = static_cast<float*>(scratch) + worker * ring_floats(s, output.w);
    for (int64_t c = 0; c < output.c; c += kChannelBlock) {
      const int64_t channels = std::min(kChannelBlock, output.c - c);
      int64_t image = -1, next = 0;  // rows of `image` below `next` have been in the ring
      for (int64_t row = begin; row < end; ++row) {
        const int64_t n = row / output.h, y = row % output.h;
        const int64_t top = std::max<int64_t>(y * s.stride_h - s.pad_top, 0);
        const int64_t bottom = std::min(y * s.stride_h - s.pad_top + s.kernel_h, input.h);
        if (n != image) {
          image = n;
          next = 0;
        }
        for (int64_t iy = std::max(next, top); iy < bottom; ++iy) {
          along_row({.input = input.pixel(n, iy, 0) + c * in_size,
                     .storage = input.storage,
                     .input_step = input.step_bytes(),
                     .in_w = input.w,
                     .out_w = output.w,
                     .kernel = s.kernel_w,
                     .stride = s.stride_w,
                     .pad = s.pad_left,
                     .channels = channels,
                     .sums = ring + iy % s.kernel_h * row_floats,
                     .sums_step = kChannelBlock});
        }
        next = std::max(next, bottom);
        along_column({.rows = ring,
                      .ring = s.kernel_h,
                      .row_floats = row_floats,
                      .rows_step = kChannelBlock,
                      .first_row = top,
                      .count = std::max<int64_t>(bottom - top, 0),
                      .out_w = output.w,
                      .channels = channels,
                      .output = output.pixel(n, y, 0) + c * out_size,
                      .storage = output.storage,
                      .output_step = output.step_bytes()});
      }
    }
  });
}

void average_pool2d(const PoolShape& s, AveragePadding padding, ConstView input, View output,
                    Isa isa, ThreadPool& pool) {
  static constexpr void (*kWindow[])(const PoolWindow&) = FERRY_BY_ISA(average_window);
  pool.parallel_for(output.batch * output.h, [&](int64_t row, int) {
    const int64_t n = row / output.h, y = row % output.h;
    const int64_t y0 = y * s.stride_h - s.pad_top, top = std::max<int64_t>(y0, 0);
    const int64_t h = std::max<int64_t>(std::min(y0 + s.kernel_h, input.h) - top, 0);
    for (int64_t x = 0; x < output.w; ++x) {
      const int64_t x0 = x * s.stride_w - s.pad_left, left = std::max<int64_t>(x0, 0);
      const int64_t w = std::max<int64_t>(std::min(x0 + s.kernel_w, input.w) - left, 0);
      const int64_t count = padding == AveragePadding::kInclude ? s.kernel_h * s.kernel_w
                                                                : std::max<int64_t>(h * w, 1);
      kWindow[static_cast<int>(isa)]({.input = h * w > 0 ? input.pixel(n, top, left) : nullptr,
                                      .row_step = input.w * input.stride,
                                      .pixel_step = input.stride,
                                      .h = h,
                                      .w = w,
                                      .channels = input.c,
                                      .scale = 1.0f / static_cast<float>(count),
                                      .output = output.pixel(n, y, x)});
    }
  });
}

void upsample_nearest(int64_t factor_h, int64_t factor_w, const StoredView& input,
                      const StoredView& output, Isa, ThreadPool& pool) {
  const auto bytes = static_cast<size_t>(input.c * element_bytes(input.storage.dtype));
  const int64_t from_step = input.step_bytes(), to_step = output.step_bytes();
  pool.parallel_for(output.batch * output.h, [&](int64_t row, int) {
    const std::byte* from = input.pixel(row / output.h, row % output.h / factor_h, 0);
    std::byte* to = output.data + row * output.w * to_step;
    for (int64_t x = 0; x < input.w; ++x, from += from_step) {
      for (int64_t i = 0; i < factor_w; ++i, to += to_step) std::memcpy(to, from, bytes);
    }
  });
}

}  // namespace ferry::cpu
