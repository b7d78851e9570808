#include "backends/cpu/kernels/conv_transpose.h"

#include <gtest/gtest.h>

#include <vector>

#include "backends/cpu/kernels/testing.h"

namespace ferry::cpu {
namespace {

// Scatters, as the operation is defined; the kernel gathers.
std::vector<double> scattered(const ConvShape& s, Picture& in, const Floats& weights,
                              const Floats& bias) {
  std::vector<double> out(static_cast<size_t>(s.batch * s.out_h * s.out_w * s.out_c));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<double>(bias[i % static_cast<size_t>(s.out_c)]);
  const int64_t out_g = s.out_c / s.groups, in_g = s.in_c / s.groups;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t iy = 0; iy < s.in_h; ++iy) {
      for (int64_t ix = 0; ix < s.in_w; ++ix) {
        for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
          for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
            const int64_t y = iy * s.stride_h - s.pad_top + ky * s.dilation_h,
                          x = ix * s.stride_w - s.pad_left + kx * s.dilation_w;
            if (y < 0 || y >= s.out_h || x < 0 || x >= s.out_w) continue;
            for (int64_t i = 0; i < s.in_c; ++i) {
              for (int64_t o = 0; o < out_g; ++o) {
                const float weight = weights[static_cast<size_t>(
                    ((i * out_g + o) * s.kernel_h + ky) * s.kernel_w + kx)];
                out[static_cast<size_t>(((n * s.out_h + y) * s.out_w + x) * s.out_c +
                                        i / in_g * out_g + o)] +=
                    static_cast<double>(weight) * static_cast<double>(in.at(n, iy, ix, i));
              }
            }
          }
        }
      }
    }
  }
  return out;
}

ConvShape transposed(int64_t hw, int64_t in_c, int64_t out_c, int64_t k, int64_t stride,
                     int64_t pad, int64_t dilation, int64_t groups) {
  const int64_t out = (hw - 1) * stride - 2 * pad + dilation * (k - 1) + 1;
  return {.batch = 2,
          .in_h = hw,
          .in_w = hw,
          .in_c = in_c,
          .out_h = out,
          .out_w = out,
          .out_c = out_c,
          .kernel_h = k,
          .kernel_w = k,
          .stride_h = stride,
          .stride_w = stride,
          .pad_top = pad,
          .pad_left = pad,
          .dilation_h = dilation,
          .dilation_w = dilation,
          .groups = groups};
}

TEST(ConvTranspose, GatheringEqualsScattering) {
  const ConvShape shapes[] = {
      transposed(5, 32, 32, 4, 2, 1, 1, 32),  // DWConvTranspose2d of YOLOv5
      transposed(5, 19, 19, 2, 2, 0, 1, 19),
      transposed(5, 8, 20, 2, 2, 0, 1, 1),
      transposed(4, 3, 17, 3, 1, 1, 1, 1),
      transposed(4, 5, 6, 3, 3, 0, 2, 1),
      transposed(4, 5, 6, 3, 2, 1, 2, 1),  // stride and dilation share a factor: some outputs have
                                           // no taps
      transposed(3, 4, 5, 1, 2, 0, 1, 1),
  };
  for (const ConvShape& s : shapes) {
    for (Isa isa : usable_isas()) {
      for (int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        Picture in = Picture::random(s.batch, s.in_h, s.in_w, s.in_c, 3, 1),
                out(s.batch, s.out_h, s.out_w, s.out_c, 5);
        Floats weights(static_cast<size_t>(s.in_c * s.out_c / s.groups * s.kernel_h * s.kernel_w)),
            bias(static_cast<size_t>(s.out_c));
        weights.randomize(2);
        bias.randomize(3);
        const ConvProblem p = {.shape = s,
                               .epilogue = {{ActivationKind::kRelu}, Residual::kNone},
                               .in_stride = in.view.stride,
                               .out_stride = out.view.stride,
                               .isa = isa};
        ASSERT_EQ(refuse_conv_transpose(p), nullptr);
        Floats packed(conv_transpose_packed_bytes(p) / sizeof(float) + 1, kGuard);
        conv_transpose_pack(p, weights.data(), bias.data(), packed.data());
        EXPECT_EQ(packed[packed.size() - 1], kGuard);
        conv_transpose_run(
            p, {.input = in.view.data, .packed = packed.data(), .output = out.view.data}, pool);
        EXPECT_TRUE(out.guards_untouched());
        const std::vector<double> want = scattered(s, in, weights, bias);
        size_t i = 0;
        for (int64_t n = 0; n < s.batch; ++n) {
          for (int64_t y = 0; y < s.out_h; ++y) {
            for (int64_t x = 0; x < s.out_w; ++x) {
              for (int64_t c = 0; c < s.out_c; ++c)
                ASSERT_NEAR(out.at(n, y, x, c), std::max(want[i++], 0.0), 1e-4);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ferry::cpu
