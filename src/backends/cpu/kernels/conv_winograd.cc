// 3x3 convolution of stride 1 with a quarter of the multiplications: Winograd's F(4x4, 3x3) (Lavin
// and Gray, arXiv 1509.09308). A tile of 6x6 input pixels becomes 36 points a channel; at each
// point the channels of many tiles are multiplied by transformed weights, an ordinary matrix
// product; 36 points of a product become 4x4 outputs.
//
//   U = G g G^T (when packing)     V = B^T d B     M = V U, point by point     Y = A^T M A
//
// The first layer of YOLOv5, 6x6 of stride 2 on 3 channels, is a 3x3 convolution of stride 1 on
// squares of 2x2 pixels, that is on 12 channels ("winograd_stem"). Rounding errors are
// about 1.7 times those of a direct sum. The loops around the transforms
// are in winograd.cc.
#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/vec.h"
#include "backends/cpu/kernels/winograd.h"

#define FERRY_KERNEL "backends/cpu/kernels/activation.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/winograd.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/conv_winograd.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {
namespace {

// G g G^T for the points 0, +-a, +-b and infinity.
void transform_weights(const double (&g)[3][3], double* elements) {
  constexpr double a = kWinograd4Points[0], b = kWinograd4Points[1];
  constexpr double a_scale = 1 / (2 * a * a * (a * a - b * b)),
                   b_scale = 1 / (2 * b * b * (b * b - a * a));
  static constexpr double kG[6][3] = {{1 / (a * a * b * b), 0, 0},
                                      {a_scale, a_scale * a, a_scale * a * a},
                                      {a_scale, -a_scale * a, a_scale * a * a},
                                      {b_scale, b_scale * b, b_scale * b * b},
                                      {b_scale, -b_scale * b, b_scale * b * b},
                                      {0, 0, 1}};
  for (int i = 0; i < 6; ++i) {
    double row[3] = {};  // of G g
    for (int x = 0; x < 3; ++x)
      row[x] = kG[i][0] * g[0][x] + kG[i][1] * g[1][x] + kG[i][2] * g[2][x];
    for (int j = 0; j < 6; ++j)
      elements[i * 6 + j] = row[0] * kG[j][0] + row[1] * kG[j][1] + row[2] * kG[j][2];
  }
}

int same_matrix(int plane) { return plane; }

int64_t depth_3x3(const ConvProblem& p) { return p.shape.in_c; }

void weights_3x3(const ConvProblem&, const float* weights, int64_t k, double* elements) {
  double g[3][3];
  for (int i = 0; i < 9; ++i) g[i / 3][i % 3] = static_cast<double>(weights[k * 9 + i]);
  transform_weights(g, elements);
}

// Depth of the squares: 2 * in_c floats of the upper row, then of the lower, which begins at a
// whole vector of 8.
int64_t lower_row(const ConvProblem& p) { return p.isa >= Isa::kAvx512 ? 2 * p.shape.in_c : 8; }
int64_t depth_squares(const ConvProblem& p) { return lower_row(p) + 2 * p.shape.in_c; }

void weights_squares(const ConvProblem& p, const float* weights, int64_t k, double* elements) {
  const int64_t lower = k >= lower_row(p) ? 1 : 0, in_row = k - lower * lower_row(p);
  double g[3][3] = {};
  if (in_row < 2 * p.shape.in_c) {
    const int64_t right = in_row / p.shape.in_c, c = in_row % p.shape.in_c;
    for (int64_t y = 0; y < 3; ++y) {
      for (int64_t x = 0; x < 3; ++x)
        g[y][x] = static_cast<double>(weights[(c * 6 + 2 * y + lower) * 6 + 2 * x + right]);
    }
  }
  transform_weights(g, elements);
}

const char* refuse_strides(const ConvShape& s, int64_t kernel, int64_t stride) {
  if (s.kernel_h != kernel || s.kernel_w != kernel) return "another kernel size";
  if (s.stride_h != stride || s.stride_w != stride) return "another stride";
  if (s.dilation_h != 1 || s.dilation_w != 1) return "dilated";
  if (s.groups != 1) return "grouped";
  return nullptr;
}

const char* refuse_3x3(const ConvProblem& p) {
  if (const char* why = refuse_not_f32(p)) return why;
  return refuse_strides(p.shape, 3, 1);
}

const char* refuse_squares(const ConvProblem& p) {
  if (const char* why = refuse_not_f32(p)) return why;
  const ConvShape& s = p.shape;
  if (const char* why = refuse_strides(s, 6, 2)) return why;
  if (p.isa == Isa::kPortable) return "a square of pixels does not fit the vectors";
  if (s.in_c > 4) return "more than 4 channels";
  if (p.in_stride != s.in_c) return "pixels are not dense";
  if (s.in_w % 2 != 0 || s.pad_left % 2 != 0) return "squares of pixels would straddle the border";
  return nullptr;
}

constexpr const WinogradFns* kFns[] = FERRY_BY_ISA(kFns4x4);
constexpr const WinogradFns* kSquareFns[] = FERRY_BY_ISA(kFnsSquares);

constexpr WinogradVariant kWinograd4 = {.planes = 36,
                                        .matrices = 36,
                                        .patch_rows = 6,
                                        .patch_cols = 6,
                                        .column_pixels = 1,
                                        .input_cycles = 240,
                                        .output_cycles = 200,
                                        .matrix_of = same_matrix,
                                        .depth = depth_3x3,
                                        .weights = weights_3x3,
                                        .fns = kFns};
constexpr WinogradVariant kWinogradStem = {.planes = 36,
                                           .matrices = 36,
                                           .patch_rows = 12,
                                           .patch_cols = 6,
                                           .column_pixels = 2,
                                           .input_cycles = 620,
                                           .output_cycles = 200,
                                           .matrix_of = same_matrix,
                                           .depth = depth_squares,
                                           .weights = weights_squares,
                                           .fns = kSquareFns};

}  // namespace

const ConvTactic conv_winograd4 = winograd_tactic<kWinograd4>("winograd4", refuse_3x3);
const ConvTactic conv_winograd_stem =
    winograd_tactic<kWinogradStem>("winograd_stem", refuse_squares);

}  // namespace ferry::cpu
