#include "ops/support/onnx_form.h"

#include <cmath>

namespace ferry::ops {

using namespace graph;

namespace {

Ref clip6(OnnxForm& form, Ref x) { return form.add("Clip", {x, form.number(0), form.number(6)}); }

Ref hardsigmoid(OnnxForm& form, Ref x) {
  return form.add("HardSigmoid", {x}, {{"alpha", 1.0 / 6.0}, {"beta", 0.5}});
}

// x * (1 + erf(x / sqrt(2))) * 0.5, as PyTorch's exporter writes it.
Ref gelu(OnnxForm& form, Ref x) {
  const Ref scaled = form.add("Div", {x, form.number(std::sqrt(2.0))});
  const Ref erf = form.add("Erf", {scaled});
  const Ref sum = form.add("Add", {erf, form.number(1)});
  const Ref product = form.add("Mul", {x, sum});
  return form.add("Mul", {product, form.number(0.5)});
}

}  // namespace

Result<Ref> add_activation(OnnxForm& form, std::string_view name, double alpha, Ref x) {
  const auto times_x = [&](Ref gate) { return form.add("Mul", {x, gate}); };
  if (name == "none") return x;
  if (name == "silu") return times_x(form.add("Sigmoid", {x}));
  if (name == "sigmoid") return form.add("Sigmoid", {x});
  if (name == "relu") return form.add("Relu", {x});
  if (name == "relu6") return clip6(form, x);
  if (name == "leaky_relu") return form.add("LeakyRelu", {x}, {{"alpha", alpha}});
  if (name == "hardsigmoid") return hardsigmoid(form, x);
  if (name == "hardswish") {
    if (form.target().opset >= 14) return form.add("HardSwish", {x});
    return times_x(hardsigmoid(form, x));
  }
  if (name == "tanh") return form.add("Tanh", {x});
  if (name == "mish") return times_x(form.add("Tanh", {form.add("Softplus", {x})}));
  if (name == "gelu") return gelu(form, x);
  if (name == "softplus") return form.add("Softplus", {x});
  if (name == "elu") return form.add("Elu", {x}, {{"alpha", alpha}});
  return error(Code::kUnsupported, "activation '{}' has no ONNX form", name);
}

Status activation_to_onnx(OnnxForm& form) {
  const auto alpha = form.node().attrs.find("alpha");
  const double value =
      alpha == form.node().attrs.end() ? 0.0 : attr<double>(form.node(), alpha->first);
  FERRY_CHECK_OK(add_activation(form, form.node().op->name, value, form.input(0)));
  return {};
}

bool has_fused_activation(const OnnxForm& form) {
  return attr<std::string>(form.node(), "activation") != "none";
}

Result<Ref> add_fused_activation(OnnxForm& form, Ref x) {
  return add_activation(form, attr<std::string>(form.node(), "activation"),
                        attr<double>(form.node(), "alpha"), x);
}

Status write_as(OnnxForm& form, std::string_view op_type, Attrs attrs) {
  form.add(op_type, form.inputs(), std::move(attrs), static_cast<int>(form.node().outputs.size()));
  return {};
}

Status write_with_list(OnnxForm& form, std::string_view op_type, std::string_view list,
                       const Ints& values, int64_t since, Attrs attrs) {
  std::vector<Ref> inputs = {form.input(0)};
  if (!values.empty() && form.target().opset < since) attrs.emplace(list, values);
  if (!values.empty() && form.target().opset >= since) inputs.push_back(form.ints(values));
  form.add(op_type, std::move(inputs), std::move(attrs),
           static_cast<int>(form.node().outputs.size()));
  return {};
}

Status reduce_to_onnx(OnnxForm& form, std::string_view op_type, int64_t since) {
  return write_with_list(form, op_type, "axes", attr<Ints>(form.node(), "axes"), since,
                         {{"keepdims", attr<int64_t>(form.node(), "keepdims")}});
}

Attrs window_to_onnx(const Node& node, const Ints& kernel) {
  return {{"kernel_shape", kernel},
          {"strides", attr<Ints>(node, "strides")},
          {"pads", attr<Ints>(node, "pads")},
          {"dilations", attr<Ints>(node, "dilations")}};
}

Ref add_split(OnnxForm& form, Ref x, int64_t axis, const Ints& sizes) {
  const auto parts = static_cast<int>(sizes.size());
  if (form.target().opset < 13) {
    return form.add("Split", {x}, {{"axis", axis}, {"split", sizes}}, parts);
  }
  return form.add("Split", {x, form.ints(sizes)}, {{"axis", axis}}, parts);
}

// Before opset 13 the inputs in front of the last one (region of interest, scales) must be there,
// if empty.
Ref add_resize(OnnxForm& form, Ref x, const ResizeTo& to, Attrs attrs) {
  const auto left_out = [&] {
    return form.target().opset < 13 ? form.exact(filled({0}, 0)) : Ref{kNone};
  };
  std::vector<Ref> inputs = {x, left_out()};
  if (!to.scales.empty()) {
    inputs.push_back(form.exact(Tensor::of<float>(
        {4}, {1, 1, static_cast<float>(to.scales[0]), static_cast<float>(to.scales[1])})));
  } else {
    inputs.push_back(left_out());
    inputs.push_back(form.ints(to.output));
  }
  return form.add("Resize", std::move(inputs), std::move(attrs));
}

Tensor filled(Shape shape, float value) {
  std::vector<float> values(static_cast<size_t>(elements(shape)), value);
  return Tensor::of<float>(std::move(shape), std::move(values));
}

}  // namespace ferry::ops
