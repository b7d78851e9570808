#include "ops/support/activation.h"

#include <algorithm>
#include <cmath>

namespace ferry::ops {
namespace {

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

constexpr ActivationRow kRows[] = {
    {"none", [](float x, float) { return x; }},
    {"silu", [](float x, float) { return x * sigmoid(x); }},
    {"sigmoid", [](float x, float) { return sigmoid(x); }},
    {"relu", [](float x, float) { return x > 0 ? x : 0.0f; }},
    {"relu6", [](float x, float) { return std::clamp(x, 0.0f, 6.0f); }},
    {"leaky_relu", [](float x, float alpha) { return x > 0 ? x : alpha * x; }},
    {"hardswish", [](float x, float) { return x * std::clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f; }},
    {"hardsigmoid", [](float x, float) { return std::clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f; }},
    {"tanh", [](float x, float) { return std::tanh(x); }},
    {"mish",
     [](float x, float) {
       return x * std::tanh(std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0f));
     }},
    {"gelu", [](float x, float) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); }},
    {"softplus",
     [](float x, float) { return std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0f); }},
    {"elu", [](float x, float alpha) { return x > 0 ? x : alpha * std::expm1(x); }},
};

}  // namespace

std::span<const ActivationRow> activations() { return kRows; }

Result<Activation> find_activation(std::string_view name) {
  for (const ActivationRow& row : kRows) {
    if (row.name == name) return row.function;
  }
  return error(Code::kInvalid, "unknown activation '{}'", name);
}

}  // namespace ferry::ops
