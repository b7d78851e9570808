// Activations by name: what `silu` means is said once, here, for the activation ops and for every
// op that fuses one.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"

namespace ferry::ops {

// y = f(x); `alpha` is the slope of leaky_relu and elu, the bound of clipped ones; others ignore
// it.
using Activation = float (*)(float x, float alpha);

struct ActivationRow {
  std::string_view name;
  Activation function;
};

std::span<const ActivationRow> activations();
Result<Activation> find_activation(std::string_view name);  // "none" is the identity

}  // namespace ferry::ops
