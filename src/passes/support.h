// What several passes ask of a graph.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/op_def.h"
#include "passes/editor.h"

namespace ferry::passes {

// The f32 data of a constant, else null.
inline const graph::Tensor* f32_constant(const Graph& graph, ValueId id) {
  if (id == graph::kNone || !graph.value(id).constant) return nullptr;
  const graph::Tensor& tensor = *graph.value(id).constant;
  return tensor.dtype() == graph::DType::kF32 ? &tensor : nullptr;
}

// Input `i`, kNone where the node leaves it out.
inline ValueId input_or_none(const Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : graph::kNone;
}

// The number that every element of a small floating constant has; nullopt when they differ or it is
// none.
std::optional<double> uniform_value(const Graph& graph, ValueId id);

// Inputs of conv2d and conv_transpose2d.
inline constexpr size_t kConvX = 0, kConvWeight = 1, kConvBias = 2, kConvResidual = 3;

// Has this convolution neither activation nor residual, so that its output is linear in its
// weights?
bool is_linear(const Node& conv);
// Weight and bias (if any) are f32 constants.
bool has_constant_weights(const Graph& graph, const Node& conv);

// [channels] of doubles: the bias, zeros when there is none. REQUIRES: has_constant_weights
std::vector<double> bias_of(const Graph& graph, const Node& conv, int64_t channels);
graph::Tensor to_f32(graph::Shape shape, const std::vector<double>& values);

}  // namespace ferry::passes
