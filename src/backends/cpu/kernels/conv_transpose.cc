// Gathers: an output pixel sees every stride-th tap of an axis, from the first whose input position
// is whole; from one such tap to the next the input moves by -dilation / gcd(stride, dilation).
#include "backends/cpu/kernels/conv_transpose.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/vec.h"

namespace ferry::cpu {
namespace {

struct TransposedPixel {
  const float* input;  // of the first tap
  int64_t input_tap_y, input_tap_x;
  int64_t taps_y, taps_x;
  const float* weights;  // of the first tap
  int64_t weight_tap_y, weight_tap_x;
  const float* bias;
  int64_t in_c, channels, padded;
  bool depthwise;
  float* output;
};

}  // namespace
}  // namespace ferry::cpu

#define FERRY_KERNEL "backends/cpu/kernels/conv_transpose.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {
namespace {

constexpr int64_t kLanes = 16;  // of the widest instruction set: the packing serves all

bool is_depthwise(const ConvShape& s) { return s.groups > 1; }

// The taps that reach output position `out`: first, first + step, ... (count of them), the first
// from input `in`.
struct Taps {
  int64_t first = 0, count = 0, in = 0;
};

Taps taps_of(int64_t out, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
             int64_t in_size) {
  Taps taps;
  for (int64_t k = 0; k < kernel; ++k) {  // few taps: looking at each is simplest
    const int64_t offset = out + pad - k * dilation;
    if (offset < 0 || offset % stride != 0 || offset / stride >= in_size) continue;
    if (taps.count == 0) {
      taps.first = k;
      taps.in = offset / stride;
    }
    ++taps.count;
  }
  return taps;
}

}  // namespace

const char* refuse_conv_transpose(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  if (const char* why = malformed(p)) return why;
  if (const char* why = refuse_not_f32(p)) return why;
  if (p.epilogue.residual != Residual::kNone) return "a residual";
  if (s.groups != 1 && !(s.groups == s.in_c && s.groups == s.out_c))
    return "groups that are neither one nor the channels";
  return nullptr;
}

size_t conv_transpose_packed_bytes(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  const int64_t in_c = is_depthwise(s) ? 1 : s.in_c;
  return static_cast<size_t>(round_up(s.out_c, kLanes) * (1 + s.kernel_h * s.kernel_w * in_c)) *
         sizeof(float);
}

// bias[padded], then [ky][kx][in_c (1 if depthwise)][padded]
void conv_transpose_pack(const ConvProblem& p, const float* weights, const float* bias,
                         void* packed) {
  const ConvShape& s = p.shape;
  const int64_t padded = round_up(s.out_c, kLanes), taps = s.kernel_h * s.kernel_w;
  const bool depthwise = is_depthwise(s);
  float* to = static_cast<float*>(packed);
  for (int64_t o = 0; o < padded; ++o) *to++ = bias && o < s.out_c ? bias[o] : 0.0f;
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t i = 0; i < (depthwise ? 1 : s.in_c); ++i) {
      for (int64_t o = 0; o < padded; ++o) {
        *to++ = o < s.out_c ? weights[(depthwise ? o : i * s.out_c + o) * taps + tap] : 0.0f;
      }
    }
  }
}

void conv_transpose_run(const ConvProblem& p, const ConvArgs& args, ThreadPool& pool) {
  static constexpr void (*kPixel[])(const TransposedPixel&) = FERRY_BY_ISA(transposed_pixel);
  const auto pixel = kPixel[static_cast<int>(p.isa)];
  const ConvShape& s = p.shape;
  const bool depthwise = is_depthwise(s);
  const int64_t padded = round_up(s.out_c, kLanes), tap_floats = padded * (depthwise ? 1 : s.in_c);
  const float* packed = static_cast<const float*>(args.packed);
  const int64_t gcd_h = std::gcd(s.stride_h, s.dilation_h),
                gcd_w = std::gcd(s.stride_w, s.dilation_w);
  const EpilogueFn epilogue = epilogue_fn(p.isa, p.epilogue);

  pool.parallel_for(s.batch * s.out_h, [&](int64_t row, int) {
    const int64_t n = row / s.out_h;
    const Taps ty = taps_of(row % s.out_h, s.kernel_h, s.stride_h, s.pad_top, s.dilation_h, s.in_h);
    float* output = static_cast<float*>(args.output) + row * s.out_w * p.out_stride;
    for (int64_t x = 0; x < s.out_w; ++x) {
      const Taps tx = taps_of(x, s.kernel_w, s.stride_w, s.pad_left, s.dilation_w, s.in_w);
      pixel({.input = static_cast<const float*>(args.input) +
                      ((n * s.in_h + ty.in) * s.in_w + tx.in) * p.in_stride,
             .input_tap_y = s.dilation_h / gcd_h * s.in_w * p.in_stride,
             .input_tap_x = s.dilation_w / gcd_w * p.in_stride,
             .taps_y = ty.count,
             .taps_x = tx.count,
             .weights = packed + padded + (ty.first * s.kernel_w + tx.first) * tap_floats,
             .weight_tap_y = s.stride_h / gcd_h * s.kernel_w * tap_floats,
             .weight_tap_x = s.stride_w / gcd_w * tap_floats,
             .bias = packed,
             .in_c = s.in_c,
             .channels = s.out_c,
             .padded = padded,
             .depthwise = depthwise,
             .output = output + x * p.out_stride});
    }
    if (p.epilogue.activation.kind == ActivationKind::kNone) return;
    epilogue({.sums = output,
              .sums_step = p.out_stride,
              .output = output,
              .output_step = p.out_stride,
              .rows = s.out_w,
              .cols = s.out_c,
              .activation = p.epilogue.activation});
  });
}

}  // namespace ferry::cpu
