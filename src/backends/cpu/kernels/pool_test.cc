#include "backends/cpu/kernels/pool.h"

#include <gtest/gtest.h>

#include <limits>

#include "backends/cpu/kernels/testing.h"

namespace ferry::cpu {
namespace {

// fold(sum, element) over the elements of the window that exist; the count of them in *seen.
template <class F>
float window(const PoolShape& s, Picture& in, int64_t n, int64_t y, int64_t x, int64_t c,
             float start, int* seen, F fold) {
  *seen = 0;
  for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
    for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
      const int64_t iy = y * s.stride_h - s.pad_top + ky, ix = x * s.stride_w - s.pad_left + kx;
      if (iy < 0 || iy >= in.view.h || ix < 0 || ix >= in.view.w) continue;
      start = fold(start, in.at(n, iy, ix, c));
      ++*seen;
    }
  }
  return start;
}

struct Case {
  PoolShape shape;
  int64_t out_h, out_w, c, slice;
};

const Case kCases[] = {
    {{5, 5, 1, 1, 2, 2}, 11, 14, 64, 0},     // SPPF
    {{13, 13, 1, 1, 6, 6}, 11, 14, 17, 16},  // SPP, window larger than the picture
    {{9, 9, 1, 1, 4, 4}, 11, 14, 70, 3},     // more channels than a block
    {{2, 2, 2, 2, 0, 0}, 5, 7, 5, 1},       {{3, 2, 2, 3, 1, 0}, 6, 5, 16, 0},
    {{2, 2, 3, 3, 0, 0}, 4, 5, 33, 2},  // stride beyond the kernel
    {{3, 3, 2, 2, 0, 0}, 6, 7, 8, 0},   // ceil mode: the last window reaches outside
    {{1, 1, 1, 1, 0, 0}, 11, 14, 3, 0},
};

TEST(Pool, MaximumAndAverageEqualTheirDefinitions) {
  for (const Case& k : kCases) {
    for (Isa isa : usable_isas()) {
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        Picture in = Picture::random(2, 11, 14, k.c, k.slice, 7);
        Picture maxima(2, k.out_h, k.out_w, k.c, k.slice),
            excluded(2, k.out_h, k.out_w, k.c, k.slice), included(2, k.out_h, k.out_w, k.c, 0);
        Floats scratch(max_pool2d_scratch_bytes(k.shape, k.out_w, threads) / sizeof(float) + 1,
                       kGuard);
        max_pool2d(k.shape, stored(in.view), stored(maxima.view), scratch.data(), isa, pool);
        average_pool2d(k.shape, AveragePadding::kExclude, in.view, excluded.view, isa, pool);
        average_pool2d(k.shape, AveragePadding::kInclude, in.view, included.view, isa, pool);
        EXPECT_EQ(scratch[scratch.size() - 1], kGuard);
        EXPECT_TRUE(maxima.guards_untouched());
        EXPECT_TRUE(excluded.guards_untouched());
        for (int64_t n = 0; n < 2; ++n) {
          for (int64_t y = 0; y < k.out_h; ++y) {
            for (int64_t x = 0; x < k.out_w; ++x) {
              for (int64_t c = 0; c < k.c; ++c) {
                int seen;
                ASSERT_EQ(maxima.at(n, y, x, c),
                          window(k.shape, in, n, y, x, c, -std::numeric_limits<float>::infinity(),
                                 &seen, [](float a, float b) { return std::max(a, b); }));
                const float sum = window(k.shape, in, n, y, x, c, 0, &seen,
                                         [](float a, float b) { return a + b; });
                const auto cells = static_cast<float>(k.shape.kernel_h * k.shape.kernel_w);
                ASSERT_NEAR(excluded.at(n, y, x, c), sum / static_cast<float>(std::max(seen, 1)),
                            1e-5);
                ASSERT_NEAR(included.at(n, y, x, c), sum / cells, 1e-5);
              }
            }
          }
        }
      }
    }
  }
}

TEST(Pool, UpsamplingRepeatsPixels) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (int64_t c : {3, 16}) {
      Picture in = Picture::random(2, 3, 5, c, 4, 3), out(2, 6, 15, c, 7);
      upsample_nearest(2, 3, stored(in.view), stored(out.view), best_isa(), pool);
      EXPECT_TRUE(out.guards_untouched());
      for (int64_t n = 0; n < 2; ++n) {
        for (int64_t y = 0; y < 6; ++y) {
          for (int64_t x = 0; x < 15; ++x) {
            for (int64_t i = 0; i < c; ++i)
              ASSERT_EQ(out.at(n, y, x, i), in.at(n, y / 2, x / 3, i));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ferry::cpu
