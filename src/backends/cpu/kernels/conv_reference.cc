// The convolution as it is defined, in plain loops, with sums in double. For every shape; for tests
// and last resort.
#include <cmath>

#include "backends/cpu/kernels/conv_tactics.h"

namespace ferry::cpu {
namespace {

double sum_at(const ConvProblem& p, const float* input, const float* weights, int64_t n, int64_t y,
              int64_t x, int64_t o) {
  const ConvShape& s = p.shape;
  const int64_t in_c = s.in_c_per_group(), first_c = o / (s.out_c / s.groups) * in_c;
  double sum = 0;
  for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
    const int64_t iy = y * s.stride_h - s.pad_top + ky * s.dilation_h;
    if (iy < 0 || iy >= s.in_h) continue;
    for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
      const int64_t ix = x * s.stride_w - s.pad_left + kx * s.dilation_w;
      if (ix < 0 || ix >= s.in_w) continue;
      const float* pixel = input + ((n * s.in_h + iy) * s.in_w + ix) * p.in_stride + first_c;
      const float* tap = weights + (o * in_c * s.kernel_h + ky) * s.kernel_w + kx;
      for (int64_t i = 0; i < in_c; ++i) {
        sum +=
            static_cast<double>(pixel[i]) * static_cast<double>(tap[i * s.kernel_h * s.kernel_w]);
      }
    }
  }
  return sum;
}

double residual_at(const ConvProblem& p, const float* residual, int64_t n, int64_t y, int64_t x,
                   int64_t o) {
  const ConvShape& s = p.shape;
  const int64_t half = p.epilogue.residual == Residual::kBeforeActivationUpsampled2x ? 2 : 1;
  const int64_t h = (s.out_h + half - 1) / half, w = (s.out_w + half - 1) / half;
  return residual[((n * h + y / half) * w + x / half) * p.residual_stride + o];
}

double cost(const ConvProblem& p, int threads) {
  return static_cast<double>(p.shape.macs()) * 8 / threads;
}

size_t packed_bytes(const ConvProblem& p) {
  return static_cast<size_t>(p.shape.out_c + p.shape.weights()) * sizeof(float);
}

void pack(const ConvProblem& p, const float* weights, const float* bias, void* packed) {
  float* to = static_cast<float*>(packed);
  for (int64_t o = 0; o < p.shape.out_c; ++o) *to++ = bias ? bias[o] : 0.0f;
  for (int64_t i = 0; i < p.shape.weights(); ++i) *to++ = weights[i];
}

size_t scratch_bytes(const ConvProblem&, int) { return 0; }

void run(const ConvProblem& p, const ConvArgs& args, ThreadPool& pool) {
  const ConvShape& s = p.shape;
  const float* input = static_cast<const float*>(args.input);
  const float* residual = static_cast<const float*>(args.residual);
  const float* bias = static_cast<const float*>(args.packed);
  const float* weights = bias + s.out_c;
  const Epilogue& e = p.epilogue;
  pool.parallel_for(s.batch * s.out_h, [&](int64_t row, int) {
    const int64_t n = row / s.out_h, y = row % s.out_h;
    float* output = static_cast<float*>(args.output) + row * s.out_w * p.out_stride;
    for (int64_t x = 0; x < s.out_w; ++x, output += p.out_stride) {
      for (int64_t o = 0; o < s.out_c; ++o) {
        const double sum = bias[o] + sum_at(p, input, weights, n, y, x, o);
        const double r = residual ? residual_at(p, residual, n, y, x, o) : 0.0;
        output[o] = static_cast<float>(e.residual == Residual::kAfterActivation
                                           ? activation_reference(e.activation, sum) + r
                                           : activation_reference(e.activation, sum + r));
      }
    }
  });
}

}  // namespace

const ConvTactic conv_reference = {
    .name = "reference",
    .refuse = refuse_not_f32,
    .cost = cost,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .prepare = nullptr,
    .run = run,
};

}  // namespace ferry::cpu
