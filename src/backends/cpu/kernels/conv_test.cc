// Every tactic, instruction set and thread count against the reference, on shapes that networks
// have and on ugly ones. The reference itself is compared with numbers worked out by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/testing.h"

namespace ferry::cpu {
namespace {

struct Case {
  ConvProblem problem;
  int slice = 0;  // channels before the slice in input, output and residual
};

std::string describe(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  return fmt::format(
      "{}x{}x{}x{} -> {}x{}x{}, k {}x{} s {}x{} p {},{} d {}x{} g {}, {} residual {}, {}", s.batch,
      s.in_h, s.in_w, s.in_c, s.out_h, s.out_w, s.out_c, s.kernel_h, s.kernel_w, s.stride_h,
      s.stride_w, s.pad_top, s.pad_left, s.dilation_h, s.dilation_w, s.groups,
      activation_name(p.epilogue.activation.kind), static_cast<int>(p.epilogue.residual),
      isa_name(p.isa));
}

// The operands of one case, random but always the same.
struct Operands {
  explicit Operands(const Case& c) : problem(c.problem), slice(static_cast<size_t>(c.slice)) {
    const ConvShape& s = problem.shape;
    if (problem.in_stride == 0) problem.in_stride = s.in_c + 2 * c.slice;
    if (problem.out_stride == 0) problem.out_stride = s.out_c + 2 * c.slice;
    const bool up = problem.epilogue.residual == Residual::kBeforeActivationUpsampled2x;
    if (problem.epilogue.residual != Residual::kNone)
      problem.residual_stride = s.out_c + 3 * c.slice;
    in_floats = static_cast<size_t>(s.batch * s.in_h * s.in_w * problem.in_stride);
    out_floats = static_cast<size_t>(s.batch * s.out_h * s.out_w * problem.out_stride);
    const int64_t half = up ? 2 : 1;
    residual_floats = static_cast<size_t>(s.batch * ((s.out_h + half - 1) / half) *
                                          ((s.out_w + half - 1) / half) * problem.residual_stride);
    input = std::make_unique<Floats>(in_floats);
    residual = std::make_unique<Floats>(residual_floats);
    weights = std::make_unique<Floats>(static_cast<size_t>(s.weights()));
    bias = std::make_unique<Floats>(static_cast<size_t>(s.out_c));
    input->randomize(1);
    residual->randomize(2);
    weights->randomize(
        3, 1.0f / std::sqrt(static_cast<float>(s.in_c_per_group() * s.kernel_h * s.kernel_w)));
    bias->randomize(4);
  }

  // Runs a tactic into guarded memory and returns all of it.
  std::vector<float> run(const ConvTactic& tactic, Isa isa, int threads, bool in_place = false,
                         bool no_bias = false) {
    ConvProblem p = problem;
    p.isa = isa;
    if (in_place) p.residual_stride = p.out_stride;
    EXPECT_EQ(malformed(p), nullptr);
    const size_t packed_bytes = tactic.packed_bytes(p),
                 scratch_bytes = tactic.scratch_bytes(p, threads);
    Floats packed(packed_bytes / 4 + 1), scratch(scratch_bytes / 4 + 1), output(out_floats);
    packed[packed_bytes / 4] = kGuard;
    scratch[scratch_bytes / 4] = kGuard;
    for (size_t i = 0; i < out_floats; ++i) output[i] = kGuard;
    if (in_place) {  // the residual's channels into the output's
      for (size_t pixel = 0; pixel < out_floats / static_cast<size_t>(p.out_stride); ++pixel) {
        for (size_t c = 0; c < static_cast<size_t>(p.shape.out_c); ++c) {
          output[pixel * static_cast<size_t>(p.out_stride) + slice + c] =
              (*residual)[pixel * static_cast<size_t>(problem.residual_stride) + slice + c];
        }
      }
    }
    tactic.pack(p, weights->data(), no_bias ? nullptr : bias->data(), packed.data());
    const std::shared_ptr<const void> prepared = tactic.prepare ? tactic.prepare(p) : nullptr;
    ThreadPool pool(threads);
    ConvArgs args = {
        .input = input->data() + slice, .packed = packed.data(), .output = output.data() + slice};
    if (p.epilogue.residual != Residual::kNone) {
      args.residual = in_place ? static_cast<const void*>(args.output) : residual->data() + slice;
    }
    args.scratch = scratch.data();
    args.prepared = prepared.get();
    tactic.run(p, args, pool);
    EXPECT_EQ(packed[packed_bytes / 4], kGuard) << "packed weights overrun";
    EXPECT_EQ(scratch[scratch_bytes / 4], kGuard) << "scratch overrun";
    return std::vector<float>(output.data(), output.data() + out_floats);
  }

  ConvProblem problem;
  size_t slice;
  size_t in_floats, out_floats, residual_floats;
  std::unique_ptr<Floats> input, residual, weights, bias;
};

void expect_near(const std::vector<float>& got, const std::vector<float>& want,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (want[i] == kGuard) {
      ASSERT_EQ(got[i], kGuard) << what << ": wrote outside its slice at " << i;
      continue;
    }
    const double error = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    worst = std::max(
        worst, std::isfinite(got[i]) ? error / (1 + std::abs(static_cast<double>(want[i]))) : 1e9);
  }
  EXPECT_LT(worst, 2e-5) << what;
}

// oneDNN compiles its kernels anew for each case, which is slow: only some tests include it.
enum class Foreign { kLeaveOut, kInclude };

void check(const Case& c, Foreign foreign = Foreign::kLeaveOut) {
  Operands operands(c);
  const std::vector<float> want = operands.run(*find_conv_tactic("reference"), Isa::kPortable, 2);
  int accepted = 0;
  for (const ConvTactic* tactic : conv_tactics()) {
    for (Isa isa : usable_isas()) {
      ConvProblem p = operands.problem;
      p.isa = isa;
      if (tactic->foreign && foreign == Foreign::kLeaveOut) continue;
      if (tactic->refuse(p) != nullptr) continue;
      ++accepted;
      for (int threads : {1, 2, 3}) {
        if (tactic->foreign && threads != 2) continue;
        const std::string what =
            fmt::format("{} with {} threads: {}", tactic->name, threads, describe(p));
        const std::vector<float> got = operands.run(*tactic, isa, threads);
        expect_near(got, want, what);
        if (threads == 2 && !tactic->foreign) {
          EXPECT_EQ(got, operands.run(*tactic, isa, threads)) << "not repeatable: " << what;
        }
      }
    }
  }
  EXPECT_GE(accepted, 2) << "only the reference ran";
}

// Square kernel, "same" padding; output by the usual formula.
ConvShape shape(int64_t hw, int64_t in_c, int64_t out_c, int64_t k, int64_t stride) {
  const int64_t pad = k / 2, out = (hw + 2 * pad - k) / stride + 1;
  return {.in_h = hw,
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
          .pad_left = pad};
}

const Epilogue kSilu = {.activation = {ActivationKind::kSilu}};

TEST(Conv, ReferenceEqualsSumsWorkedOutByHand) {
  // A 3x3 picture 1..9 under a 2x2 kernel (1, 10; 100, 1000) with one row and column of padding
  // above and left.
  ConvProblem p = {.shape = {.in_h = 3,
                             .in_w = 3,
                             .in_c = 1,
                             .out_h = 2,
                             .out_w = 2,
                             .out_c = 1,
                             .kernel_h = 2,
                             .kernel_w = 2,
                             .stride_h = 2,
                             .stride_w = 2,
                             .pad_top = 1,
                             .pad_left = 1},
                   .in_stride = 1,
                   .out_stride = 1};
  const float input[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, weights[] = {1, 10, 100, 1000}, bias = 0.5f;
  float output[4];
  const ConvTactic& reference = *find_conv_tactic("reference");
  Floats packed(reference.packed_bytes(p) / 4);
  reference.pack(p, weights, &bias, packed.data());
  ThreadPool pool(1);
  reference.run(p, {.input = input, .packed = packed.data(), .output = output}, pool);
  EXPECT_EQ(output[0], 1000.5f);                    // only pixel 1, under the last tap
  EXPECT_EQ(output[1], 100 * 2 + 1000 * 3 + 0.5f);  // 2 and 3 under the lower row
  EXPECT_EQ(output[2], 10 * 4 + 1000 * 7 + 0.5f);   // 4 above 7 in the right column
  EXPECT_EQ(output[3], 5 + 60 + 800 + 9000 + 0.5f);
}

TEST(Conv, TacticsAgreeOnTheLayersOfYolov5) {
  check({{.shape = {.in_h = 64,
                    .in_w = 96,
                    .in_c = 3,
                    .out_h = 32,
                    .out_w = 48,
                    .out_c = 16,
                    .kernel_h = 6,
                    .kernel_w = 6,
                    .stride_h = 2,
                    .stride_w = 2,
                    .pad_top = 2,
                    .pad_left = 2},
          .epilogue = kSilu}},
        Foreign::kInclude);
  check({{.shape = shape(40, 16, 32, 3, 2), .epilogue = kSilu}}, Foreign::kInclude);
  check({{.shape = shape(40, 32, 32, 1, 1), .epilogue = kSilu}, 32}, Foreign::kInclude);
  check({{.shape = shape(40, 16, 16, 3, 1),
          .epilogue = {{ActivationKind::kSilu}, Residual::kAfterActivation}},
         16},
        Foreign::kInclude);
  check({{.shape = shape(20, 64, 64, 3, 1),
          .epilogue = {{ActivationKind::kSilu}, Residual::kAfterActivation}}},
        Foreign::kInclude);
  check({{.shape = shape(10, 48, 96, 3, 2), .epilogue = kSilu}, 48}, Foreign::kInclude);
  check({{.shape = shape(20, 128, 255, 1, 1)}}, Foreign::kInclude);
  check({{.shape = shape(20, 24, 48, 3, 1), .epilogue = kSilu}, 24}, Foreign::kInclude);
}

TEST(Conv, TacticsAgreeOnEveryKindOfSize) {
  for (int64_t k : {1, 2, 3, 5, 6, 7}) {
    for (int64_t stride : {1, 2, 3}) check({{.shape = shape(13, 5, 17, k, stride)}});
  }
  for (int64_t in_c : {1, 3, 5, 17, 33}) {
    for (int64_t out_c : {1, 3, 16, 17, 31, 40, 81, 255})
      check({{.shape = shape(7, in_c, out_c, 3, 1)}, 1});
  }
  for (int64_t hw : {1, 2, 3, 4, 5, 8, 9, 29}) {
    check({{.shape = shape(hw, 6, 20, 3, 1)}, 4});
    check({{.shape = shape(hw, 6, 20, 3, 2)}, 4});
    check({{.shape = shape(hw, 6, 20, 1, 1)}, 4});
  }
}

TEST(Conv, TacticsAgreeOnRectanglesAsymmetricPaddingAndBatches) {
  ConvShape s = {.batch = 3,
                 .in_h = 5,
                 .in_w = 33,
                 .in_c = 7,
                 .out_h = 6,
                 .out_w = 31,
                 .out_c = 19,
                 .kernel_h = 3,
                 .kernel_w = 3,
                 .pad_top = 2,
                 .pad_left = 0};
  check({{.shape = s, .epilogue = kSilu}, 3});
  s.pad_left = 2;
  s.out_w = 36;  // one column past what symmetric padding gives: right padding of 3
  check({{.shape = s}});
  s.kernel_w = 1;
  s.stride_w = 2;
  s.out_w = 17;
  check({{.shape = s}, 5});
  check(
      {{.shape = {
            .batch = 2, .in_h = 1, .in_w = 1, .in_c = 40, .out_h = 1, .out_w = 1, .out_c = 100}}});
  check({{.shape = {.batch = 3,
                    .in_h = 12,
                    .in_w = 20,
                    .in_c = 32,
                    .out_h = 12,
                    .out_w = 20,
                    .out_c = 32,
                    .kernel_h = 3,
                    .kernel_w = 3,
                    .pad_top = 1,
                    .pad_left = 1},
          .epilogue = kSilu}});
  // A kernel so much larger than the picture that most outputs see padding alone.
  check({{.shape = {.in_h = 2,
                    .in_w = 3,
                    .in_c = 4,
                    .out_h = 12,
                    .out_w = 13,
                    .out_c = 5,
                    .kernel_h = 5,
                    .kernel_w = 5,
                    .pad_top = 7,
                    .pad_left = 7}}});
}

TEST(Conv, TacticsAgreeOnDilationAndGroups) {
  ConvShape s = {.in_h = 17,
                 .in_w = 19,
                 .in_c = 12,
                 .out_h = 17,
                 .out_w = 19,
                 .out_c = 24,
                 .kernel_h = 3,
                 .kernel_w = 3,
                 .pad_top = 2,
                 .pad_left = 2,
                 .dilation_h = 2,
                 .dilation_w = 2};
  check({{.shape = s}, 4});
  s.groups = 3;
  check({{.shape = s, .epilogue = kSilu}, 4});
  s = shape(11, 34, 34, 3, 2);
  s.groups = 2;  // 17 channels a group
  check({{.shape = s}});
}

TEST(Conv, TacticsAgreeOnDepthwise) {
  for (int64_t c : {1, 3, 16, 17, 64}) {
    for (int64_t k : {1, 2, 3, 4, 5, 7}) {
      for (int64_t stride : {1, 2, 3}) {
        ConvShape s = shape(15, c, c, k, stride);
        s.groups = c;
        check({{.shape = s, .epilogue = {{ActivationKind::kRelu}, Residual::kAfterActivation}}, 2});
      }
    }
  }
  ConvShape s = shape(16, 32, 32, 3, 1);
  s.groups = 32;
  s.dilation_h = s.dilation_w = 3;
  s.pad_top = s.pad_left = 3;
  check({{.shape = s}});
}

TEST(Conv, TacticsAgreeOnEveryResidual) {
  for (Residual residual : {Residual::kAfterActivation, Residual::kBeforeActivation,
                            Residual::kBeforeActivationUpsampled2x}) {
    for (int64_t out_c : {5, 16, 32, 50}) {
      for (int64_t k : {1, 3}) {
        check(
            {{.shape = shape(14, 9, out_c, k, 1), .epilogue = {{ActivationKind::kSilu}, residual}},
             3});
        check({{.shape = shape(31, 9, out_c, k, 1),
                .epilogue = {{ActivationKind::kLeakyRelu, 0.1f}, residual}}});
        check(
            {{.shape = shape(9, 9, out_c, k, 2), .epilogue = {{ActivationKind::kNone}, residual}}});
      }
    }
  }
}

TEST(Conv, TacticsAgreeOnEveryActivation) {
  for (int kind = 0; kind < kActivationKinds; ++kind) {
    check({{.shape = shape(9, 8, 20, 3, 1),
            .epilogue = {{static_cast<ActivationKind>(kind), 0.2f}, Residual::kNone}},
           1});
    check({{.shape = shape(9, 8, 20, 1, 1),
            .epilogue = {{static_cast<ActivationKind>(kind), 0.2f}, Residual::kAfterActivation}},
           1},
          Foreign::kInclude);
  }
}

TEST(Conv, TheOutputMayHoldTheResidual) {
  for (int64_t k : {1, 3}) {
    for (int64_t stride : {1, 2}) {
      Operands operands({{.shape = shape(21, 16, 24, k, stride),
                          .epilogue = {{ActivationKind::kSilu}, Residual::kAfterActivation}},
                         8});
      const std::vector<float> want =
          operands.run(*find_conv_tactic("reference"), Isa::kPortable, 1);
      for (const ConvTactic* tactic : conv_tactics()) {
        for (Isa isa : usable_isas()) {
          ConvProblem p = operands.problem;
          p.isa = isa;
          p.residual_stride = p.out_stride;
          if (tactic->refuse(p) != nullptr) continue;
          expect_near(operands.run(*tactic, isa, 2, /*in_place=*/true), want, tactic->name);
        }
      }
    }
  }
}

TEST(Conv, NoBiasMeansZeros) {
  Operands operands({{.shape = shape(8, 16, 24, 3, 1)}});
  const std::vector<float> want =
      operands.run(*find_conv_tactic("reference"), Isa::kPortable, 1, false, true);
  for (const ConvTactic* tactic : conv_tactics()) {
    ConvProblem p = operands.problem;
    p.isa = best_isa();
    if (tactic->refuse(p) != nullptr) continue;
    expect_near(operands.run(*tactic, p.isa, 1, false, true), want, tactic->name);
  }
}

TEST(Conv, MalformedProblemsAreNamed) {
  ConvProblem p = {.shape = shape(8, 16, 24, 3, 1), .in_stride = 16, .out_stride = 24};
  EXPECT_EQ(malformed(p), nullptr);
  p.in_stride = 15;
  EXPECT_STREQ(malformed(p), "a pixel stride is below the channels");
  p.in_stride = 16;
  p.shape.groups = 5;
  EXPECT_STREQ(malformed(p), "the groups do not divide the channels");
}

TEST(Conv, ChosenTacticAcceptsTheProblem) {
  for (int64_t k : {1, 3, 6}) {
    for (int64_t stride : {1, 2}) {
      const ConvShape s = shape(32, 32, 64, k, stride);
      const ConvProblem p = {.shape = s, .in_stride = 32, .out_stride = 64, .isa = best_isa()};
      const ConvTactic& tactic = choose_conv_tactic(p, 1);
      EXPECT_EQ(tactic.refuse(p), nullptr);
      EXPECT_STRNE(tactic.name, "reference");
      EXPECT_FALSE(tactic.foreign);
    }
  }
}

}  // namespace
}  // namespace ferry::cpu
