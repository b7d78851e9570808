// The convolution as it is defined, in plain loops, with sums in double. For every shape; for tests
// and last resort.
#include <cmath>

#include "backends/cpu/kernels/conv_tactics.h"

namespace ferry::cpu {
namespace {

// Elements of one operand.
struct Elements {
  const std::byte* data;
  Storage storage;
  double operator[](int64_t i) const {
    return static_cast<double>(load_element(storage, data + i * element_bytes(storage.dtype)));
  }
};

double sum_at(const ConvProblem& p, const Elements& input, const float* weights, int64_t n,
              int64_t y, int64_t x, int64_t o) {
  const ConvShape& s = p.shape;
  const int64_t in_c = s.in_c_per_group(), first_c = o / (s.out_c / s.groups) * in_c;
  double sum = 0;
  for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
    const int64_t iy = y * s.stride_h - s.pad_top + ky * s.dilation_h;
    if (iy < 0 || iy >= s.in_h) continue;
    for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
      const int64_t ix = x * s.stride_w - s.pad_left + kx * s.dilation_w;
      if (ix < 0 || ix >= s.in_w) continue;
      const int64_t pixel = ((n * s.in_h + iy) * s.in_w + ix) * p.in_stride + first_c;
      const float* tap = weights + (o * in_c * s.kernel_h + ky) * s.kernel_w + kx;
      for (int64_t i = 0; i < in_c; ++i) {
        sum += input[pixel + i] * static_cast<double>(tap[i * s.kernel_h * s.kernel_w]);
      }
    }
  }
  return sum;
}

double residual_at(const ConvProblem& p, const Elements& residual, int64_t n, int64_t y, int64_t x,
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
  const int64_t row = p.shape.weights() / p.shape.out_c;
  for (int64_t i = 0; i < p.shape.weights(); ++i) {
    const Storage storage = {p.weight, p.weight == DType::kS8 ? p.weight_scales[i / row] : 1.0f};
    std::byte element[4];
    store_element(storage, element, weights[i]);
    *to++ = load_element(storage, element);
  }
}

size_t scratch_bytes(const ConvProblem&, int) { return 0; }

void run(const ConvProblem& p, const ConvArgs& args, ThreadPool& pool) {
  const ConvShape& s = p.shape;
  const Elements input = {static_cast<const std::byte*>(args.input), p.input};
  const Elements residual = {static_cast<const std::byte*>(args.residual), p.residual};
  const int64_t out_size = element_bytes(p.output.dtype);
  const float* bias = static_cast<const float*>(args.packed);
  const float* weights = bias + s.out_c;
  const Epilogue& e = p.epilogue;
  pool.parallel_for(s.batch * s.out_h, [&](int64_t row, int) {
    const int64_t n = row / s.out_h, y = row % s.out_h;
    std::byte* output =
        static_cast<std::byte*>(args.output) + row * s.out_w * p.out_stride * out_size;
    for (int64_t x = 0; x < s.out_w; ++x, output += p.out_stride * out_size) {
      for (int64_t o = 0; o < s.out_c; ++o) {
        const double sum = bias[o] + sum_at(p, input, weights, n, y, x, o);
        const double r = residual.data ? residual_at(p, residual, n, y, x, o) : 0.0;
        const double value = e.residual == Residual::kAfterActivation
                                 ? activation_reference(e.activation, sum) + r
                                 : activation_reference(e.activation, sum + r);
        store_element(p.output, output + o * out_size, static_cast<float>(value));
      }
    }
  });
}

}  // namespace

const ConvTactic conv_reference = {
    .name = "reference",
    .refuse = [](const ConvProblem&) -> const char* { return nullptr; },
    .cost = cost,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .prepare = nullptr,
    .run = run,
};

}  // namespace ferry::cpu
