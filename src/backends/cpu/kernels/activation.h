// Elementwise functions that a kernel can apply to its result. What each means, in doubles:
// activation_reference().
#pragma once

#include <cstdint>

namespace ferry::cpu {

enum class ActivationKind : uint8_t {
  kNone,
  kRelu,         // max(x, 0)
  kRelu6,        // min(max(x, 0), 6)
  kLeakyRelu,    // x > 0 ? x : alpha * x
  kSigmoid,      // 1 / (1 + e^-x)
  kSilu,         // x * sigmoid(x)
  kHardSwish,    // x * min(max(x + 3, 0), 6) / 6
  kHardSigmoid,  // min(max(x / 6 + 1 / 2, 0), 1)
  kMish,         // x * tanh(ln(1 + e^x))
  kGelu,         // x / 2 * (1 + erf(x / sqrt(2)))
  kTanh,
  kExp,
};
inline constexpr int kActivationKinds = 12;

struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  float alpha = 0.0f;  // kLeakyRelu only

  bool operator==(const Activation&) const = default;
};

const char* activation_name(ActivationKind kind);
double activation_reference(Activation activation, double x);

}  // namespace ferry::cpu
