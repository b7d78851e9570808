// Gives a yaml's module tree its data.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "import/torch/module.h"
#include "import/torch/tensors.h"

namespace ferry::import {

// Random weights as PyTorch initialises them (uniform, bound 1 / sqrt(fan in)), batch norms at
// rest, and the head's biases as YOLOv5 starts training (rare objects). The same seed gives the
// same numbers on every machine.
Status fill_random(torch::ModuleTree& tree, uint64_t seed);

// Weights by parameter name ("model.0.conv.weight") from a mapping of names to tensors. Prefixes
// that wrappers add
// ("module.", "model.") are found. Weights of fused models (no batch norms) fit, too. Missing,
// unexpected and mis-shaped names are an error that lists them; returns warnings.
Status fill_from_state_dict(torch::ModuleTree& tree, const torch::Value& weights,
                            torch::TensorReader& tensors);

// The class count that the weights' head has, for a yaml whose head is `detect`: 0 when it cannot
// be told.
Result<int64_t> classes_in_state_dict(const torch::Module& layers, const torch::Value& weights,
                                      torch::TensorReader& tensors);

}  // namespace ferry::import
