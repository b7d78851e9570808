// What the exporter's tests share: inputs, and comparing what two graphs compute.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/evaluate.h"

namespace ferry::exporter::test {

// Numbers between -1 and 1 for f32, small integers for others; the same every time.
inline graph::Tensor sample(const graph::TensorType& type, uint64_t seed) {
  auto floats = graph::Tensor::make({graph::DType::kF32, type.shape});
  EXPECT_TRUE(floats.ok());
  for (float& x : floats->mut<float>()) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(seed >> 40) / 0x1p23f - 1;
    if (type.dtype != graph::DType::kF32) x = std::floor(x * 4 + 4);
  }
  auto out = floats->cast(type.dtype);
  EXPECT_TRUE(out.ok());
  return *out;
}

inline std::vector<graph::Tensor> samples(const graph::Graph& graph) {
  std::vector<graph::Tensor> out;
  for (const graph::ValueId id : graph.inputs) {
    out.push_back(sample(graph.value(id).type, out.size()));
  }
  return out;
}

// Both compute the same from the same inputs, to tolerance * (1 + |y|).
inline void expect_same_outputs(const graph::Graph& a, const graph::Graph& b, double tolerance) {
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  const std::vector<graph::Tensor> inputs = samples(a);
  const auto ya = ops::evaluate(a, inputs), yb = ops::evaluate(b, inputs);
  ASSERT_TRUE(ya.ok()) << ya.error().message;
  ASSERT_TRUE(yb.ok()) << yb.error().message;
  ASSERT_EQ(ya->size(), yb->size());
  for (size_t i = 0; i < ya->size(); ++i) {
    const graph::Tensor &wanted = (*ya)[i], &got = (*yb)[i];
    ASSERT_EQ(graph::type_text(got.type()), graph::type_text(wanted.type()));
    if (wanted.dtype() != graph::DType::kF32) {
      EXPECT_EQ(*got.to_ints(), *wanted.to_ints());
      continue;
    }
    for (size_t k = 0; k < wanted.as<float>().size(); ++k) {
      const float y = wanted.as<float>()[k];
      ASSERT_NEAR(got.as<float>()[k], y, tolerance * (1 + std::fabs(y)))
          << "output " << i << ", element " << k;
    }
  }
}

}  // namespace ferry::exporter::test
