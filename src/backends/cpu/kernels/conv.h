// Two-dimensional convolutions: what is computed, and the list of ways ("tactics") to compute it.
//
//   output(n, y, x, o) = epilogue( bias(o) + sum over ky, kx, i of
//       input(n, y * stride_h - pad_top + ky * dilation_h, x * stride_w - pad_left + kx *
//       dilation_w, i) * weight(o, i, ky, kx) )
//
// where input outside the picture is zero, so the padding below and to the right follows from the
// output's size. Life of a convolution: choose a tactic for the problem (its cost, or a
// measurement) -> pack the weights once -> prepare once a plan -> run every frame. Packed weights
// are plain bytes without pointers: contexts share them, files may hold them; they belong to
// (tactic, problem) and to nothing else. Sources: conv_igemm.cc, conv_winograd.cc,
// conv_depthwise.cc, conv_onednn.cc, conv_reference.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/activation.h"
#include "backends/cpu/kernels/storage.h"
#include "backends/cpu/kernels/view.h"
#include "base/thread_pool.h"

namespace ferry::cpu {

struct ConvShape {
  int64_t batch = 1;
  int64_t in_h = 0, in_w = 0, in_c = 0;
  int64_t out_h = 0, out_w = 0, out_c = 0;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;  // divides in_c and out_c

  bool operator==(const ConvShape&) const = default;

  int64_t in_c_per_group() const { return in_c / groups; }
  int64_t weights() const { return out_c * in_c_per_group() * kernel_h * kernel_w; }
  int64_t macs() const { return batch * out_h * out_w * weights(); }
};

enum class Residual : uint8_t {
  kNone,
  kAfterActivation,             // act(conv) + residual: the bottleneck x + cv2(cv1(x))
  kBeforeActivation,            // act(conv + residual)
  kBeforeActivationUpsampled2x  // act(conv + residual(n, y / 2, x / 2, o)): a 1x1 convolution over
                                // concat(upsample(a), b) is conv_b(b) with conv_a(a), computed at
                                // a's size, as its residual
};

struct Epilogue {
  Activation activation{};
  Residual residual = Residual::kNone;

  bool operator==(const Epilogue&) const = default;
};

// Everything that is known when a plan is made.
struct ConvProblem {
  ConvShape shape{};
  Epilogue epilogue{};
  int64_t in_stride = 0, out_stride = 0,
          residual_stride = 0;  // pixel strides in elements, see view.h
  Isa isa = Isa::kPortable;     // best_isa(), or lower
  // Pixels and weights go in pairs: kF32 and kF32, kBf16 and kBf16 (sums in fp32), kU8 and kS8
  // (exact sums in int32). The output and the residual may be of any type but kS8.
  Storage input{}, output{}, residual{};
  DType weight = DType::kF32;
  const float* weight_scales = nullptr;  // kS8: [out_c]; pack() reads them

  bool operator==(const ConvProblem&) const = default;
};

// What a run needs. Nothing here is owned. `residual` may be `output` itself (same address and
// stride); otherwise output must not overlap an operand.
struct ConvArgs {
  const void* input = nullptr;
  const void* packed = nullptr;  // from pack(), 64-byte aligned
  void* output = nullptr;
  const void* residual = nullptr;  // null exactly when the epilogue has none
  void* scratch =
      nullptr;  // scratch_bytes(), 64-byte aligned; contents do not matter before or after
  const void* prepared = nullptr;  // from prepare(); null where that is null
};

struct ConvTactic {
  const char* name;
  bool foreign =
      false;  // computes with a library that is not ours; choose_conv_tactic() leaves it out

  // Why this tactic can not do this problem, or null when it can. The other members REQUIRE that it
  // is null.
  const char* (*refuse)(const ConvProblem&);

  // Estimated cycles on one of `threads` cores: comparable among tactics, the same on every
  // machine.
  double (*cost)(const ConvProblem&, int threads);

  // Weights are [out_c][in_c / groups][kernel_h][kernel_w] fp32, rounded to `weight` here; bias
  // [out_c] or null for zeros.
  size_t (*packed_bytes)(const ConvProblem&);
  void (*pack)(const ConvProblem&, const float* weights, const float* bias, void* packed);

  size_t (*scratch_bytes)(const ConvProblem&, int threads);

  // (optional) State that a run needs beside the weights, made once a plan; several threads may run
  // with it at once. May return null on failure (a library refused at the last moment): take
  // another tactic then.
  std::shared_ptr<const void> (*prepare)(const ConvProblem&);

  // Does not allocate. Same problem, operands and pool.threads(): same bits.
  void (*run)(const ConvProblem&, const ConvArgs&, ThreadPool&);
};

// Best first where costs are equal; the reference, which accepts every well-formed problem, is
// last.
std::span<const ConvTactic* const> conv_tactics();

// By name, or null.
const ConvTactic* find_conv_tactic(const char* name);

// The accepting tactic of the lowest cost. Tactics of foreign libraries are taken only by name (or
// after measuring).
const ConvTactic& choose_conv_tactic(const ConvProblem&, int threads);

// Why the problem itself is malformed (sizes not positive, groups that do not divide, strides below
// channels, ...), or null. Tactics REQUIRE null.
const char* malformed(const ConvProblem&);

}  // namespace ferry::cpu
