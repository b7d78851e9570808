// Convolution of each channel by itself (groups == in_c == out_c): vectors of channels, four
// neighbouring pixels at a time where they see the same taps, one at a time at the borders.
#include <algorithm>

#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/vec.h"

namespace ferry::cpu {
namespace {

struct DepthwisePixels {
  const float* a;  // first pixel's first tap
  int64_t a_pixel, a_tap_y, a_tap_x;
  int64_t taps_y, taps_x;
  const float* weights;  // of the first tap; [ky][kx][padded_channels]
  int64_t weights_row;   // taps in a row of weights
  const float* bias;
  int64_t channels, padded_channels;
  float* sums;  // [pixels][padded_channels]
};

struct DepthwiseFns {
  int lanes;
  void (*one)(const DepthwisePixels&);
  void (*four)(const DepthwisePixels&);
};

}  // namespace
}  // namespace ferry::cpu

#define FERRY_KERNEL "backends/cpu/kernels/conv_depthwise.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {
namespace {

const DepthwiseFns& depthwise_fns(Isa isa) {
  static constexpr const DepthwiseFns* kTable[] = FERRY_BY_ISA(kDepthwise);
  return *kTable[static_cast<int>(isa)];
}

int64_t padded_channels(const ConvProblem& p) {
  return round_up(p.shape.out_c, depthwise_fns(p.isa).lanes);
}

const char* refuse(const ConvProblem& p) {
  if (const char* why = refuse_not_f32(p)) return why;
  const ConvShape& s = p.shape;
  return s.groups == s.in_c && s.groups == s.out_c ? nullptr : "not one channel a group";
}

double cost(const ConvProblem& p, int threads) {
  const double vectors = static_cast<double>(p.shape.batch * p.shape.out_h * p.shape.out_w) *
                         static_cast<double>(padded_channels(p) / depthwise_fns(p.isa).lanes);
  return vectors * static_cast<double>(p.shape.kernel_h * p.shape.kernel_w + 12) / threads;
}

size_t packed_bytes(const ConvProblem& p) {
  const int64_t taps = p.shape.kernel_h * p.shape.kernel_w;
  return static_cast<size_t>((taps + 1) * padded_channels(p)) * sizeof(float);
}

void pack(const ConvProblem& p, const float* weights, const float* bias, void* packed) {
  const int64_t taps = p.shape.kernel_h * p.shape.kernel_w, padded = padded_channels(p),
                c = p.shape.out_c;
  float* to = static_cast<float*>(packed);
  for (int64_t i = 0; i < padded; ++i) *to++ = bias && i < c ? bias[i] : 0.0f;
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t i = 0; i < padded; ++i) *to++ = i < c ? weights[i * taps + tap] : 0.0f;
  }
}

size_t scratch_bytes(const ConvProblem& p, int threads) {
  return static_cast<size_t>(threads * round_up(4 * padded_channels(p), 16)) * sizeof(float);
}

void run(const ConvProblem& p, const ConvArgs& args, ThreadPool& pool) {
  const ConvShape& s = p.shape;
  const DepthwiseFns& fns = depthwise_fns(p.isa);
  const int64_t padded = padded_channels(p);
  const float* packed = static_cast<const float*>(args.packed);
  const EpilogueFn epilogue = epilogue_fn(p.isa, p.epilogue);
  const bool upsampled = p.epilogue.residual == Residual::kBeforeActivationUpsampled2x;
  const int64_t half = upsampled ? 2 : 1;

  pool.parallel_for(s.batch * s.out_h, [&](int64_t row, int worker) {
    const int64_t n = row / s.out_h, y = row % s.out_h;
    float* sums = static_cast<float*>(args.scratch) + worker * round_up(4 * padded, 16);
    const int64_t top = y * s.stride_h - s.pad_top;
    const TapRange ky = valid_taps(top, s.kernel_h, s.dilation_h, s.in_h);
    const float* in_row = static_cast<const float*>(args.input) +
                          (n * s.in_h + top + ky.begin * s.dilation_h) * s.in_w * p.in_stride;
    const int64_t residual_row = (n * ceil_div(s.out_h, half) + y / half) * ceil_div(s.out_w, half);
    const int64_t last_tap = (s.kernel_w - 1) * s.dilation_w;
    for (int64_t x = 0; x < s.out_w;) {
      const int64_t left = x * s.stride_w - s.pad_left;
      const bool four = x + 4 <= s.out_w && left >= 0 && left + 3 * s.stride_w + last_tap < s.in_w;
      const TapRange kx = valid_taps(left, s.kernel_w, s.dilation_w, s.in_w);
      const int64_t pixels = four ? 4 : 1;
      (four ? fns.four : fns.one)({
          .a = in_row + (left + kx.begin * s.dilation_w) * p.in_stride,
          .a_pixel = s.stride_w * p.in_stride,
          .a_tap_y = s.dilation_h * s.in_w * p.in_stride,
          .a_tap_x = s.dilation_w * p.in_stride,
          .taps_y = ky.end - ky.begin,
          .taps_x = kx.end - kx.begin,
          .weights = packed + padded * (1 + ky.begin * s.kernel_w + kx.begin),
          .weights_row = s.kernel_w,
          .bias = packed,
          .channels = s.out_c,
          .padded_channels = padded,
          .sums = sums,
      });
      const float* residual = static_cast<const float*>(args.residual);
      epilogue({
          .sums = sums,
          .sums_step = padded,
          .output = static_cast<float*>(args.output) + (row * s.out_w + x) * p.out_stride,
          .output_step = p.out_stride,
          .residual = residual ? residual + (residual_row + x / half) * p.residual_stride : nullptr,
          .residual_step = p.residual_stride,
          .rows = pixels,
          .cols = s.out_c,
          .x = x,
          .mode = p.epilogue.residual,
          .activation = p.epilogue.activation,
      });
      x += pixels;
    }
  });
}

}  // namespace

const ConvTactic conv_depthwise = {
    .name = "depthwise",
    .refuse = refuse,
    .cost = cost,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .prepare = nullptr,
    .run = run,
};

}  // namespace ferry::cpu
