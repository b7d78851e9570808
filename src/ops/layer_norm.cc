// layer_norm: over the axes from `axis` on, (x - mean) / sqrt(variance + epsilon) * scale + bias;
// scale and bias have the shape of those axes.
#include <cmath>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kX = 0, kScale = 1, kBias = 2;

const AttrDef kAttrs[] = {
    {"axis", int64_t{-1}, "first axis to normalise over; negative counts from the end"},
    {"epsilon", 1e-5, "added to the variance"},
};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  const Shape& x = args.inputs[kX]->shape;
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.size()));
  const Shape normalised(x.begin() + static_cast<int64_t>(axis), x.end());
  FERRY_CHECK_OK(need_shape(args, kScale, normalised, "scale"));
  FERRY_CHECK_OK(need_shape(args, kBias, normalised, "bias"));
  return one_output(DType::kF32, x);
}

Status eval(const EvalArgs& args) {
  const Tensor& input = *args.inputs[kX];
  const Tensor* scale = input_or_null(args, kScale);
  const Tensor* bias = input_or_null(args, kBias);
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), input.shape().size()));
  const AxisView view = around_axis(input.shape(), axis);
  const auto row = static_cast<size_t>(view.size * view.inner);
  const double epsilon = attr<double>(args.node, "epsilon");
  const float* x = input.as<float>().data();
  float* y = args.outputs[0]->mut<float>().data();
  for (int64_t outer = 0; outer < view.outer; ++outer, x += row, y += row) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < row; ++i) mean += x[i] / static_cast<double>(row);
    for (size_t i = 0; i < row; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(row);
    const double factor = 1 / std::sqrt(variance + epsilon);
    for (size_t i = 0; i < row; ++i) {
      const double normal = (x[i] - mean) * factor;
      y[i] = static_cast<float>(normal * (scale ? scale->as<float>()[i] : 1.0f) +
                                (bias ? bias->as<float>()[i] : 0.0f));
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 3));
  FERRY_CHECK_OK(need_outputs(node, 1));
  return with_inputs(
      node, 3, {{"axis", node.int_or("axis", -1)}, {"epsilon", node.float_or("epsilon", 1e-5)}});
}

const OnnxRow kOnnx[] = {{"LayerNormalization", from_onnx}};

// One node from opset 17 on; before, the steps.
Status to_onnx(OnnxForm& form) {
  const Shape& x = form.shape(kX);
  FERRY_TRY(axis, axis_of(attr<int64_t>(form.node(), "axis"), x.size()));
  const double epsilon = attr<double>(form.node(), "epsilon");
  if (form.target().opset >= 17) {
    const Ref scale =
        form.has_input(kScale)
            ? form.input(kScale)
            : form.constant(filled(Shape(x.begin() + static_cast<int64_t>(axis), x.end()), 1));
    std::vector<Ref> inputs = {form.input(kX), scale};
    if (form.has_input(kBias)) inputs.push_back(form.input(kBias));
    form.add("LayerNormalization", std::move(inputs),
             {{"axis", static_cast<int64_t>(axis)}, {"epsilon", epsilon}});
    return {};
  }
  Ints axes;
  for (size_t i = axis; i < x.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  const Attrs over = {{"axes", axes}, {"keepdims", int64_t{1}}};
  const Ref mean = form.add("ReduceMean", {form.input(kX)}, over);
  const Ref centred = form.add("Sub", {form.input(kX), mean});
  const Ref squares = form.add("Mul", {centred, centred});
  const Ref variance = form.add("ReduceMean", {squares}, over);
  const Ref sum = form.add("Add", {variance, form.number(epsilon)});
  Ref y = form.add("Div", {centred, form.add("Sqrt", {sum})});
  if (form.has_input(kScale)) y = form.add("Mul", {y, form.input(kScale)});
  if (form.has_input(kBias)) form.add("Add", {y, form.input(kBias)});
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,5,16]
      const scale: f32[16] = uniform(1, 0.5, 2)
      const bias: f32[16] = uniform(2, -1, 1)
      y = layer_norm(x, scale, bias)
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = layer_norm(x) axis=1 epsilon=0.01
      output y
    })"},
};

}  // namespace

extern const OpDef op_layer_norm;
const OpDef op_layer_norm = {
    .name = "layer_norm",
    .summary = "normalises the last axes by their own mean and variance",
    .min_inputs = 1,
    .max_inputs = 3,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops
