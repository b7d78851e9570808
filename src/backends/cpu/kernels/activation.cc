#include "backends/cpu/kernels/activation.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace ferry::cpu {
namespace {

constexpr const char* kNames[] = {"none",    "relu", "relu6",      "leaky_relu",
                                  "sigmoid", "silu", "hard_swish", "hard_sigmoid",
                                  "mish",    "gelu", "tanh",       "exp"};
static_assert(std::size(kNames) == kActivationKinds);

}  // namespace

const char* activation_name(ActivationKind kind) { return kNames[static_cast<int>(kind)]; }

double activation_reference(Activation activation, double x) {
  switch (activation.kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case ActivationKind::kLeakyRelu:
      return x > 0 ? x : static_cast<double>(activation.alpha) * x;
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationKind::kHardSwish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
    case ActivationKind::kHardSigmoid:
      return std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case ActivationKind::kMish:
      return x * std::tanh(std::log1p(std::exp(std::min(x, 700.0))));
    case ActivationKind::kGelu:
      return x / 2 * std::erfc(-x * M_SQRT1_2);
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kExp:
      return std::exp(x);
  }
  return x;
}

}  // namespace ferry::cpu
