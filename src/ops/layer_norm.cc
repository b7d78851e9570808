// layer_norm: over the axes from `axis` on, (x - mean) / sqrt(variance + epsilon) * scale + bias;
// scale and bias have the shape of those axes.
#include <cmath>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
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
    .cases = kCases,
};

}  // namespace ferry::ops
