// What the ops' `to_onnx` share.
#pragma once

#include <string_view>

#include "graph/onnx_form.h"
#include "graph/op_def.h"

namespace ferry::ops {

using Ref = graph::OnnxForm::Ref;

// The activation `name` of `x`: an ONNX node where the opset has one, else what exporters write.
// "none" is `x` itself.
Result<Ref> add_activation(graph::OnnxForm& form, std::string_view name, double alpha, Ref x);
// The whole of an op that is one activation.
Status activation_to_onnx(graph::OnnxForm& form);
// The activation that `node` has fused in: its attributes `activation` and `alpha`.
Result<Ref> add_fused_activation(graph::OnnxForm& form, Ref x);
bool has_fused_activation(const graph::OnnxForm& form);

// One node with the op's inputs.
Status write_as(graph::OnnxForm& form, std::string_view op_type, graph::Attrs attrs = {});

// A list that is an attribute before opset `since`, then an input.
Status write_with_list(graph::OnnxForm& form, std::string_view op_type, std::string_view list,
                       const graph::Ints& values, int64_t since, graph::Attrs attrs = {});

// reduce_*: `axes` became an input of ReduceSum in opset 13, of its like in 18.
Status reduce_to_onnx(graph::OnnxForm& form, std::string_view op_type, int64_t since);

// kernel_shape, strides, pads, dilations, as exporters write them. `node` has the last three.
graph::Attrs window_to_onnx(const graph::Node& node, const graph::Ints& kernel);

// Parts of `x`; the first one, the others follow.
Ref add_split(graph::OnnxForm& form, Ref x, int64_t axis, const graph::Ints& sizes);

// A picture by two scales (rows, columns), else to the whole output's dimensions.
struct ResizeTo {
  graph::Floats scales = {};
  graph::Shape output = {};
};
Ref add_resize(graph::OnnxForm& form, Ref x, const ResizeTo& to, graph::Attrs attrs);

graph::Tensor filled(graph::Shape shape, float value);

}  // namespace ferry::ops
