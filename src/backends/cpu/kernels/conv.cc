#include "backends/cpu/kernels/conv.h"

#include <cstring>

#include "backends/cpu/kernels/conv_tactics.h"

namespace ferry::cpu {

std::span<const ConvTactic* const> conv_tactics() {
  static constexpr const ConvTactic* kTactics[] = {
    &conv_depthwise,
    &conv_winograd4,
    &conv_winograd_stem,
    &conv_winograd_s2,
    &conv_igemm,
#if defined(FERRY_HAVE_ONEDNN)
    &conv_onednn,
#endif
    &conv_reference,
  };
  return kTactics;
}

const ConvTactic* find_conv_tactic(const char* name) {
  for (const ConvTactic* tactic : conv_tactics()) {
    if (std::strcmp(tactic->name, name) == 0) return tactic;
  }
  return nullptr;
}

const ConvTactic& choose_conv_tactic(const ConvProblem& problem, int threads) {
  const ConvTactic* best = &conv_reference;
  double best_cost = best->cost(problem, threads);
  for (const ConvTactic* tactic : conv_tactics()) {
    if (tactic->foreign || tactic->refuse(problem) != nullptr) continue;
    const double cost = tactic->cost(problem, threads);
    if (cost < best_cost) {
      best = tactic;
      best_cost = cost;
    }
  }
  return *best;
}

const char* malformed(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  if (s.batch < 1 || s.in_h < 1 || s.in_w < 1 || s.in_c < 1) return "the input is empty";
  if (s.out_h < 1 || s.out_w < 1 || s.out_c < 1) return "the output is empty";
  if (s.kernel_h < 1 || s.kernel_w < 1) return "the kernel is empty";
  if (s.stride_h < 1 || s.stride_w < 1) return "a stride is below 1";
  if (s.dilation_h < 1 || s.dilation_w < 1) return "a dilation is below 1";
  if (s.pad_top < 0 || s.pad_left < 0) return "a padding is negative";
  if (s.groups < 1 || s.in_c % s.groups != 0 || s.out_c % s.groups != 0) {
    return "the groups do not divide the channels";
  }
  if (p.in_stride < s.in_c || p.out_stride < s.out_c) return "a pixel stride is below the channels";
  if (p.epilogue.residual != Residual::kNone && p.residual_stride < s.out_c) {
    return "the residual's pixel stride is below the channels";
  }
  const DType pixels = p.input.dtype;
  const bool pair = pixels == DType::kU8 ? p.weight == DType::kS8 : p.weight == pixels;
  if (!pair || pixels == DType::kS8) return "pixels and weights of these types do not go together";
  if (p.output.dtype == DType::kS8 || p.residual.dtype == DType::kS8) {
    return "an output or residual of signed bytes";
  }
  if (p.weight == DType::kS8 && p.weight_scales == nullptr)
    return "weights of bytes have no scales";
  return nullptr;
}

const char* refuse_not_f32(const ConvProblem& p) {
  const bool f32 = p.input.dtype == DType::kF32 && p.weight == DType::kF32 &&
                   p.output.dtype == DType::kF32 && p.residual.dtype == DType::kF32;
  return f32 ? nullptr : "only fp32 operands";
}

}  // namespace ferry::cpu
