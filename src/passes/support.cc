#include "passes/support.h"

#include <algorithm>

namespace ferry::passes {

using namespace graph;

namespace {

constexpr int64_t kMostElements = 4096;  // looked at again and again

}  // namespace

std::optional<double> uniform_value(const Graph& graph, ValueId id) {
  if (id == kNone || !graph.value(id).constant) return std::nullopt;
  const Tensor& tensor = *graph.value(id).constant;
  if (tensor.size() > kMostElements) return std::nullopt;
  const auto all_equal = [](auto values) -> std::optional<double> {
    if (values.empty()) return std::nullopt;
    for (const auto v : values) {
      if (v != values[0]) return std::nullopt;
    }
    return static_cast<double>(values[0]);
  };
  if (tensor.dtype() == DType::kF32) return all_equal(tensor.as<float>());
  if (tensor.dtype() == DType::kF64) return all_equal(tensor.as<double>());
  return std::nullopt;
}

bool is_linear(const Node& conv) {
  const auto none = [&](std::string_view name) {
    const auto found = conv.attrs.find(name);
    return found == conv.attrs.end() || std::get<std::string>(found->second) == "none";
  };
  return none("activation") && none("residual");
}

bool has_constant_weights(const Graph& graph, const Node& conv) {
  const ValueId bias = input_or_none(conv, kConvBias);
  return f32_constant(graph, conv.inputs[kConvWeight]) != nullptr &&
         (bias == kNone || f32_constant(graph, bias) != nullptr);
}

std::vector<double> bias_of(const Graph& graph, const Node& conv, int64_t channels) {
  const Tensor* bias = f32_constant(graph, input_or_none(conv, kConvBias));
  if (bias == nullptr) return std::vector<double>(static_cast<size_t>(channels), 0.0);
  const auto values = bias->as<float>();
  return {values.begin(), values.end()};
}

Tensor to_f32(Shape shape, const std::vector<double>& values) {
  return Tensor::of<float>(std::move(shape), std::vector<float>(values.begin(), values.end()));
}

}  // namespace ferry::passes
