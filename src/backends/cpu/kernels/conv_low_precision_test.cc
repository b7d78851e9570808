// Convolutions of bytes and of bfloat16, with outputs and residuals of any storage, against the
// reference loops in double, and against sums worked out by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/testing.h"

namespace ferry::cpu {
namespace {

constexpr std::byte kUntouched{0xa5};
const Storage kFloat{};
const Storage kHalf{DType::kBf16};
const Storage kBytes{DType::kU8, 0.03f, 9};
const Storage kOutBytes{DType::kU8, 0.05f, 70};

struct Bytes {
  explicit Bytes(size_t size) : floats((size + 3) / 4 + 16) {
    std::memset(floats.data(), static_cast<int>(kUntouched), floats.size() * 4);
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(floats.data()); }
  Floats floats;
};

// Random elements in [-1, 2), rounded to the storage.
void randomize(Bytes& bytes, const Storage& storage, int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 2.0f);
  for (int64_t i = 0; i < count; ++i)
    store_element(storage, bytes.data() + i * element_bytes(storage.dtype), uniform(random));
}

std::string describe(const ConvProblem& p, const ConvTactic& tactic, int threads) {
  const ConvShape& s = p.shape;
  return fmt::format(
      "{} {} {} threads: {}x{}x{}x{} -> {}x{}x{} k {}x{} s {} p {},{} d {} g {} in {} out {} "
      "residual {} of {} {}",
      tactic.name, isa_name(p.isa), threads, s.batch, s.in_h, s.in_w, s.in_c, s.out_h, s.out_w,
      s.out_c, s.kernel_h, s.kernel_w, s.stride_h, s.pad_top, s.pad_left, s.dilation_h, s.groups,
      static_cast<int>(p.input.dtype), static_cast<int>(p.output.dtype),
      static_cast<int>(p.epilogue.residual), static_cast<int>(p.residual.dtype),
      activation_name(p.epilogue.activation.kind));
}

struct Operands {
  explicit Operands(ConvProblem problem, int64_t slice) : p(problem), slice_(slice) {
    const ConvShape& s = p.shape;
    p.in_stride = s.in_c + 2 * slice;
    p.out_stride = s.out_c + 2 * slice;
    const int64_t half = p.epilogue.residual == Residual::kBeforeActivationUpsampled2x ? 2 : 1;
    if (p.epilogue.residual != Residual::kNone) p.residual_stride = s.out_c + slice;
    const int64_t in = s.batch * s.in_h * s.in_w * p.in_stride;
    out = s.batch * s.out_h * s.out_w * p.out_stride;
    const int64_t add =
        s.batch * ((s.out_h + half - 1) / half) * ((s.out_w + half - 1) / half) * p.residual_stride;
    input.emplace_back(static_cast<size_t>(in * element_bytes(p.input.dtype)));
    residual.emplace_back(static_cast<size_t>(add * element_bytes(p.residual.dtype)));
    randomize(input[0], p.input, in, 1);
    randomize(residual[0], p.residual, add, 2);
    std::mt19937 random(3);
    std::normal_distribution<float> normal(
        0.0f, 1.0f / std::sqrt(static_cast<float>(s.weights() / s.out_c)));
    for (int64_t i = 0; i < s.weights(); ++i) weights.push_back(normal(random));
    for (int64_t i = 0; i < s.out_c; ++i) {
      bias.push_back(normal(random));
      float most = 0;
      for (int64_t k = 0; k < s.weights() / s.out_c; ++k)
        most =
            std::max(most, std::fabs(weights[static_cast<size_t>(i * s.weights() / s.out_c + k)]));
      scales.push_back(most / 127);
    }
    if (p.weight == DType::kS8) p.weight_scales = scales.data();
  }

  Bytes run(const ConvTactic& tactic, Isa isa, int threads) {
    ConvProblem problem = p;
    problem.isa = isa;
    EXPECT_EQ(malformed(problem), nullptr);
    const size_t packed_bytes = tactic.packed_bytes(problem),
                 scratch_bytes = tactic.scratch_bytes(problem, threads);
    Floats packed(packed_bytes / 4 + 1), scratch(scratch_bytes / 4 + 1);
    packed[packed_bytes / 4] = scratch[scratch_bytes / 4] = kGuard;
    tactic.pack(problem, weights.data(), bias.data(), packed.data());
    const int64_t size = element_bytes(p.output.dtype);
    Bytes output(static_cast<size_t>(out * size));
    ThreadPool pool(threads);
    const bool adds = p.epilogue.residual != Residual::kNone;
    tactic.run(
        problem,
        {.input = input[0].data() + slice_ * element_bytes(p.input.dtype),
         .packed = packed.data(),
         .output = output.data() + slice_ * size,
         .residual = adds ? residual[0].data() + slice_ * element_bytes(p.residual.dtype) : nullptr,
         .scratch = scratch.data()},
        pool);
    EXPECT_EQ(packed[packed_bytes / 4], kGuard);
    EXPECT_EQ(scratch[scratch_bytes / 4], kGuard);
    return output;
  }

  void expect_near(Bytes& got, Bytes& want, const std::string& what) {
    const int64_t size = element_bytes(p.output.dtype);
    double worst = 0;
    for (int64_t i = 0; i < out * size; ++i) {
      const int64_t c = i / size % p.out_stride - slice_;
      if (c >= 0 && c < p.shape.out_c) continue;
      ASSERT_EQ(got.data()[i], kUntouched) << what << ": wrote outside its slice";
    }
    for (int64_t i = 0; i < out; ++i) {
      const int64_t c = i % p.out_stride - slice_;
      if (c < 0 || c >= p.shape.out_c) continue;
      const double a = static_cast<double>(load_element(p.output, got.data() + i * size));
      const double b = static_cast<double>(load_element(p.output, want.data() + i * size));
      worst = std::max(worst, std::isfinite(a) ? std::fabs(a - b) / (1 + std::fabs(b)) : 1e9);
    }
    // Where the exact sum lies near the middle of two elements, either is right.
    const double element = p.output.dtype == DType::kU8     ? static_cast<double>(p.output.scale)
                           : p.output.dtype == DType::kBf16 ? 0x1p-7
                                                            : 0;
    EXPECT_LE(worst, element + 2e-5) << what;
  }

  ConvProblem p;
  int64_t slice_, out = 0;
  std::vector<Bytes> input, residual;
  std::vector<float> weights, bias, scales;
};

void check(const ConvProblem& problem, int64_t slice) {
  Operands operands(problem, slice);
  Bytes want = operands.run(*find_conv_tactic("reference"), Isa::kPortable, 2);
  int accepted = 0;
  for (const ConvTactic* tactic : conv_tactics()) {
    if (tactic->foreign || std::string(tactic->name) == "reference") continue;
    for (const Isa isa : usable_isas(Isa::kAvx512Bf16)) {
      ConvProblem p = operands.p;
      p.isa = isa;
      if (tactic->refuse(p) != nullptr) continue;
      ++accepted;
      for (const int threads : {1, 3}) {
        Bytes got = operands.run(*tactic, isa, threads);
        operands.expect_near(got, want, describe(p, *tactic, threads));
      }
    }
  }
  EXPECT_GE(accepted, 1) << "only the reference ran";
}

ConvShape shape(int64_t h, int64_t w, int64_t in_c, int64_t out_c, int64_t k, int64_t stride,
                int64_t pad) {
  return {.batch = 1,
          .in_h = h,
          .in_w = w,
          .in_c = in_c,
          .out_h = (h + 2 * pad - k) / stride + 1,
          .out_w = (w + 2 * pad - k) / stride + 1,
          .out_c = out_c,
          .kernel_h = k,
          .kernel_w = k,
          .stride_h = stride,
          .stride_w = stride,
          .pad_top = pad,
          .pad_left = pad};
}

const Activation kSilu{ActivationKind::kSilu};

void check_pairs(const ConvShape& s, const Epilogue& epilogue, int64_t slice) {
  for (const Storage& output : {kFloat, kHalf, kOutBytes}) {
    const Storage residual = epilogue.residual == Residual::kNone ? kFloat : output;
    check({.shape = s,
           .epilogue = epilogue,
           .input = kBytes,
           .output = output,
           .residual = residual,
           .weight = DType::kS8},
          slice);
    check({.shape = s,
           .epilogue = epilogue,
           .input = kHalf,
           .output = output,
           .residual = residual,
           .weight = DType::kBf16},
          slice);
    check(
        {.shape = s, .epilogue = epilogue, .input = kFloat, .output = output, .residual = residual},
        slice);
  }
}

TEST(ConvLowPrecision, TacticsAgreeOnTheLayersOfYolov5) {
  check_pairs(shape(32, 48, 3, 16, 6, 2, 2), {kSilu}, 0);
  check_pairs(shape(20, 20, 16, 32, 3, 2, 1), {kSilu}, 0);
  check_pairs(shape(20, 22, 32, 32, 1, 1, 0), {kSilu}, 16);
  check_pairs(shape(20, 20, 16, 16, 3, 1, 1), {kSilu, Residual::kAfterActivation}, 16);
  check_pairs(shape(10, 14, 64, 255, 1, 1, 0), {}, 0);
  check_pairs(shape(9, 9, 48, 96, 3, 2, 1), {kSilu}, 48);
}

TEST(ConvLowPrecision, TacticsAgreeOnEveryKindOfSize) {
  for (const int64_t in_c : {1, 2, 3, 4, 5, 6, 8, 17, 33}) {
    for (const int64_t out_c : {1, 3, 16, 17, 40, 81})
      check_pairs(shape(7, 9, in_c, out_c, 3, 1, 1), {{ActivationKind::kRelu}}, in_c % 3);
  }
  for (const int64_t k : {1, 2, 5, 6, 7}) {
    for (const int64_t stride : {1, 2, 3})
      check_pairs(shape(13, 15, 5, 17, k, stride, k / 2), {kSilu}, 0);
  }
  for (const int64_t hw : {1, 2, 3, 8, 29}) check_pairs(shape(hw, hw, 12, 20, 3, 1, 1), {kSilu}, 4);
}

TEST(ConvLowPrecision, TacticsAgreeOnBatchesDilationGroupsAndWidePadding) {
  ConvShape s = shape(11, 13, 24, 36, 3, 1, 2);
  s.dilation_h = s.dilation_w = 2;
  s.out_h = 11;
  s.out_w = 13;
  s.batch = 2;
  check_pairs(s, {kSilu}, 4);
  s.groups = 3;
  check_pairs(s, {kSilu}, 4);
  s = shape(2, 3, 8, 5, 5, 1, 7);  // most outputs see padding alone
  check_pairs(s, {}, 0);
}

TEST(ConvLowPrecision, TacticsAgreeOnEveryResidualAndActivation) {
  for (const Residual residual : {Residual::kAfterActivation, Residual::kBeforeActivation,
                                  Residual::kBeforeActivationUpsampled2x}) {
    for (const int64_t out_c : {5, 32})
      check_pairs(shape(9, 11, 8, out_c, 1, 1, 0), {kSilu, residual}, 3);
    // The residual of one storage, the output of another.
    check({.shape = shape(9, 11, 8, 32, 3, 1, 1),
           .epilogue = {kSilu, residual},
           .input = kBytes,
           .output = kOutBytes,
           .residual = kHalf,
           .weight = DType::kS8},
          0);
    check({.shape = shape(9, 11, 8, 32, 3, 1, 1),
           .epilogue = {kSilu, residual},
           .input = kHalf,
           .output = kFloat,
           .residual = kBytes,
           .weight = DType::kBf16},
          0);
  }
  for (int kind = 0; kind < kActivationKinds; ++kind) {
    check({.shape = shape(5, 7, 8, 20, 1, 1, 0),
           .epilogue = {{static_cast<ActivationKind>(kind), 0.2f}},
           .input = kBytes,
           .output = kOutBytes,
           .weight = DType::kS8},
          0);
  }
}

TEST(ConvLowPrecision, TheLargestProductsAreSummedExactly) {
  // 64 products of 255 and 127, twice in each 16-bit pair: 2 * 255 * 127 saturates int16.
  const float scale = 1.0f;
  std::vector<float> scales(16, scale);
  ConvProblem p = {.shape = shape(1, 1, 64, 16, 1, 1, 0),
                   .in_stride = 64,
                   .out_stride = 16,
                   .input = {DType::kU8, 1.0f, 0},
                   .weight = DType::kS8,
                   .weight_scales = scales.data()};
  std::vector<uint8_t> input(64, 255);
  for (const float weight : {127.0f, -127.0f}) {
    const std::vector<float> weights(64 * 16, weight), bias(16, 0.5f);
    for (const Isa isa : usable_isas(Isa::kAvx512Bf16)) {
      p.isa = isa;
      const ConvTactic& tactic = *find_conv_tactic("igemm");
      ASSERT_EQ(tactic.refuse(p), nullptr);
      Floats packed(tactic.packed_bytes(p) / 4), scratch(tactic.scratch_bytes(p, 1) / 4), out(16);
      tactic.pack(p, weights.data(), bias.data(), packed.data());
      ThreadPool pool(1);
      tactic.run(p,
                 {.input = input.data(),
                  .packed = packed.data(),
                  .output = out.data(),
                  .scratch = scratch.data()},
                 pool);
      for (size_t c = 0; c < 16; ++c) EXPECT_EQ(out[c], 64 * 255 * weight + 0.5f) << isa_name(isa);
    }
  }
}

TEST(ConvLowPrecision, StoredElementsAreTheNearest) {
  // bfloat16 keeps 8 bits: 1 + 2^-8 is halfway between 1 and 1 + 2^-7, ties go to even.
  std::byte bytes[2];
  const auto half = [&](float value) {
    store_element(kHalf, bytes, value);
    return load_element(kHalf, bytes);
  };
  EXPECT_EQ(half(1.00390625f), 1.0f);
  EXPECT_EQ(half(1.01171875f), 1.015625f);
  EXPECT_TRUE(std::isnan(half(std::nanf(""))));
  const auto byte = [&](float value) {
    store_element({DType::kU8, 0.5f, 10}, bytes, value);
    return static_cast<int>(bytes[0]);
  };
  EXPECT_EQ(byte(0), 10);
  EXPECT_EQ(byte(0.75f), 12);  // 1.5 -> 2
  EXPECT_EQ(byte(1.25f), 12);  // 2.5 -> 2
  EXPECT_EQ(byte(-100), 0);
  EXPECT_EQ(byte(1e30f), 255);
  EXPECT_EQ(byte(std::nanf("")), 10);
}

TEST(ConvLowPrecision, PairsThatDoNotGoTogetherAreNamed) {
  ConvProblem p = {.shape = shape(8, 8, 16, 24, 3, 1, 1), .in_stride = 16, .out_stride = 24};
  p.input = kBytes;
  EXPECT_STREQ(malformed(p), "pixels and weights of these types do not go together");
  p.weight = DType::kS8;
  EXPECT_STREQ(malformed(p), "weights of bytes have no scales");
}

}  // namespace
}  // namespace ferry::cpu
