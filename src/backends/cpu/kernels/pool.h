// Pooling and resampling over NHWC views (view.h). All kernels of this header write every element
// of `output`.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/storage.h"
#include "backends/cpu/kernels/view.h"
#include "base/thread_pool.h"

namespace ferry::cpu {

struct PoolShape {
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0,
          pad_left =
              0;  // bottom and right follow from the output's size (so ceil mode needs no flag)
};

// Bytes of scratch that max_pool2d needs for this output width.
size_t max_pool2d_scratch_bytes(const PoolShape&, int64_t out_w, int threads);

// Maximum over the window's elements that lie inside the input (-infinity where there are none).
// NaN in a window may or may not win. Pictures of any storage.
void max_pool2d(const PoolShape&, const StoredView& input, const StoredView& output, void* scratch,
                Isa, ThreadPool&);

// Average over the window. Elements outside count as zeros when `count_include_pad`, else they do
// not count.
enum class AveragePadding : uint8_t { kExclude, kInclude };
void average_pool2d(const PoolShape&, AveragePadding, ConstView input, View output, Isa,
                    ThreadPool&);

// Nearest upsampling by whole factors: output(y, x) = input(y / factor_h, x / factor_w).
// REQUIRES: output.h == input.h * factor_h, output.w == input.w * factor_w, same c, same storage.
void upsample_nearest(int64_t factor_h, int64_t factor_w, const StoredView& input,
                      const StoredView& output, Isa, ThreadPool&);

}  // namespace ferry::cpu
