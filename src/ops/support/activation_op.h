// The ops that are nothing but one row of support/activation: y = f(x), f32. The op's name is the
// activation's.
#pragma once

#include <span>
#include <string_view>

#include "graph/op_def.h"
#include "ops/support/check.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

Result<Types> infer_activation(const graph::InferArgs& args);
Status eval_activation(const graph::EvalArgs& args);  // reads `alpha` where the op has it

constexpr graph::OpDef activation_op(std::string_view name, std::string_view summary,
                                     std::span<const graph::OpCase> cases,
                                     std::span<const graph::OnnxRow> onnx = {},
                                     std::span<const graph::AttrDef> attrs = {}) {
  return {.name = name,
          .summary = summary,
          .attrs = attrs,
          .infer = infer_activation,
          .eval = eval_activation,
          .onnx = onnx,
          .to_onnx = activation_to_onnx,
          .cases = cases};
}

}  // namespace ferry::ops
