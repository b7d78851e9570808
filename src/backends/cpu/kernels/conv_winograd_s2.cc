// 3x3 convolution of stride 2 with 81 multiplications for 4x4 outputs instead of 144. The taps fall
// into four groups by the parity of the input row and column they meet, and within a group the
// stride is 1:
//
//   rows even, columns even: taps (0, 0) (0, 2) (2, 0) (2, 2), F(4x4, 2x2): 25 products
//   rows even, columns odd:  taps (0, 1) (2, 1), F(4, 2) along y: 20
//   rows odd, columns even:  taps (1, 0) (1, 2), F(4, 2) along x: 20
//   rows odd, columns odd:   tap (1, 1), plain: 16
//
// The groups meet in the output transform. There are 25 + 5 + 5 + 1 different matrices of weights,
// four times the plain weights. The loops around the transforms are in winograd.cc.
#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/vec.h"
#include "backends/cpu/kernels/winograd.h"

#define FERRY_KERNEL "backends/cpu/kernels/activation.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/winograd.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/conv_winograd_s2.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {
namespace {

int matrix_of(int plane) {
  if (plane < 25) return plane;
  if (plane < 65) return 25 + (plane - 25) / 4;
  return 35;
}

int64_t depth(const ConvProblem& p) { return p.shape.in_c; }

void weights_of(const ConvProblem&, const float* weights, int64_t k, double* elements) {
  constexpr double a = kWinogradS2Points[0], b = kWinogradS2Points[1];
  constexpr double a_scale = 1 / (2 * a * (a * a - b * b)), b_scale = 1 / (2 * b * (b * b - a * a));
  static constexpr double kG[5][2] = {{a_scale, a_scale * a},
                                      {-a_scale, a_scale * a},
                                      {b_scale, b_scale * b},
                                      {-b_scale, b_scale * b},
                                      {0, 1}};
  const auto g = [&](int y, int x) { return static_cast<double>(weights[k * 9 + y * 3 + x]); };
  for (int i = 0; i < 5; ++i) {
    const double left = kG[i][0] * g(0, 0) + kG[i][1] * g(2, 0),
                 right = kG[i][0] * g(0, 2) + kG[i][1] * g(2, 2);
    for (int j = 0; j < 5; ++j) elements[i * 5 + j] = left * kG[j][0] + right * kG[j][1];
    elements[25 + i] = kG[i][0] * g(0, 1) + kG[i][1] * g(2, 1);
    elements[30 + i] = kG[i][0] * g(1, 0) + kG[i][1] * g(1, 2);
  }
  elements[35] = g(1, 1);
}

const char* refuse(const ConvProblem& p) {
  if (const char* why = refuse_not_f32(p)) return why;
  const ConvShape& s = p.shape;
  if (s.kernel_h != 3 || s.kernel_w != 3) return "another kernel size";
  if (s.stride_h != 2 || s.stride_w != 2) return "another stride";
  if (s.dilation_h != 1 || s.dilation_w != 1) return "dilated";
  if (s.groups != 1) return "grouped";
  return nullptr;
}

constexpr const WinogradFns* kFns[] = FERRY_BY_ISA(kFnsStride2);

constexpr WinogradVariant kStride2 = {.planes = 81,
                                      .matrices = 36,
                                      .patch_rows = 9,
                                      .patch_cols = 9,
                                      .column_pixels = 1,
                                      .input_cycles = 700,
                                      .output_cycles = 260,
                                      .matrix_of = matrix_of,
                                      .depth = depth,
                                      .weights = weights_of,
                                      .fns = kFns};

}  // namespace

const ConvTactic conv_winograd_s2 = winograd_tactic<kStride2>("winograd_s2", refuse);

}  // namespace ferry::cpu
