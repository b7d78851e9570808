#include "backends/cpu/kernels/activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/kernels/eltwise.h"
#include "backends/cpu/kernels/testing.h"

namespace ferry::cpu {
namespace {

// Applies the kernel to values from -range to range, and returns the worst of error(got, want, x).
template <class Error>
double worst_error(ActivationKind kind, Isa isa, double range, Error error) {
  constexpr int64_t kCount = 100'003;  // not a multiple of any vector
  Floats input(kCount), output(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    input[static_cast<size_t>(i)] =
        static_cast<float>(range * (2.0 * static_cast<double>(i) / (kCount - 1) - 1));
  }
  ThreadPool pool(1);
  apply_activation({kind, 0.1f}, {input.data(), 1, 1, kCount, 1, 1},
                   {output.data(), 1, 1, kCount, 1, 1}, isa, pool);
  double worst = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double want = activation_reference({kind, 0.1f}, static_cast<double>(input[i]));
    worst =
        std::max(worst, error(static_cast<double>(output[i]), want, static_cast<double>(input[i])));
  }
  return worst;
}

double relative(double got, double want, double) {
  return std::abs(got - want) / (std::abs(want) + 1e-30);
}
double absolute(double got, double want, double x) {
  return std::abs(got - want) / std::max(1.0, std::abs(x));
}

TEST(Activation, ExponentialOnesAreRightInEveryBitThatMatters) {
  for (Isa isa : usable_isas()) {
    const double limit = isa == Isa::kPortable ? 3e-6 : 1e-6;  // portable has no fma
    for (ActivationKind kind : {ActivationKind::kSilu, ActivationKind::kSigmoid,
                                ActivationKind::kExp, ActivationKind::kMish}) {
      EXPECT_LT(worst_error(kind, isa, 1, relative), limit)
          << activation_name(kind) << " " << isa_name(isa);
      EXPECT_LT(worst_error(kind, isa, 30, relative), limit)
          << activation_name(kind) << " " << isa_name(isa);
    }
  }
}

TEST(Activation, EveryKindIsCloseToItsDefinition) {
  for (Isa isa : usable_isas()) {
    for (int kind = 0; kind < kActivationKinds; ++kind) {
      const auto k = static_cast<ActivationKind>(kind);
      if (k == ActivationKind::kExp) continue;  // above
      for (double range : {0.01, 1.0, 8.0, 100.0, 1e6}) {
        EXPECT_LT(worst_error(k, isa, range, absolute), 1e-6)
            << activation_name(k) << " " << isa_name(isa) << " " << range;
      }
    }
  }
}

TEST(Activation, LargeInputsStayFinite) {
  for (Isa isa : usable_isas()) {
    for (int kind = 0; kind < kActivationKinds; ++kind) {
      const auto k = static_cast<ActivationKind>(kind);
      const auto infinite = [](double got, double, double) {
        return std::isfinite(got) ? 0.0 : 1.0;
      };
      EXPECT_EQ(worst_error(k, isa, 1e18, infinite), 0.0)
          << activation_name(k) << " " << isa_name(isa);
    }
  }
}

TEST(Activation, ReferenceEqualsKnownValues) {
  EXPECT_DOUBLE_EQ(activation_reference({ActivationKind::kSilu}, 0), 0);
  EXPECT_NEAR(activation_reference({ActivationKind::kSilu}, 1), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(activation_reference({ActivationKind::kMish}, 1), 0.8650983882673103, 1e-15);
  EXPECT_NEAR(activation_reference({ActivationKind::kGelu}, 1), 0.8413447460685429, 1e-15);
  EXPECT_DOUBLE_EQ(activation_reference({ActivationKind::kHardSwish}, 1), 4.0 / 6);
  EXPECT_DOUBLE_EQ(activation_reference({ActivationKind::kLeakyRelu, 0.5f}, -3), -1.5);
  EXPECT_DOUBLE_EQ(activation_reference({ActivationKind::kRelu6}, 7), 6);
  EXPECT_DOUBLE_EQ(activation_reference({ActivationKind::kHardSigmoid}, 1.5), 0.75);
}

}  // namespace
}  // namespace ferry::cpu
