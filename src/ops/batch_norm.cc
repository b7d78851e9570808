// batch_norm: (x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c], with the statistics
// of training. Channels are axis 1.
#include <cmath>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kX = 0, kScale = 1, kBias = 2, kMean = 3, kVariance = 4;

const AttrDef kAttrs[] = {{"epsilon", 1e-5, "added to the variance"}};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  const Shape& x = args.inputs[kX]->shape;
  if (x.size() < 2) {
    return error(Code::kInvalid, "input is {}, needs a channel axis", shape_text(x));
  }
  const std::string_view names[] = {"input", "scale", "bias", "mean", "variance"};
  for (size_t i = kScale; i <= kVariance; ++i) {
    FERRY_CHECK_OK(need_shape(args, i, {x[1]}, names[i]));
  }
  return one_output(DType::kF32, x);
}

Status eval(const EvalArgs& args) {
  const auto x = args.inputs[kX]->as<float>();
  const auto y = args.outputs[0]->mut<float>();
  const AxisView view = around_axis(args.outputs[0]->shape(), 1);
  const double epsilon = attr<double>(args.node, "epsilon");
  size_t i = 0;
  for (int64_t n = 0; n < view.outer; ++n) {
    for (size_t c = 0; c < static_cast<size_t>(view.size); ++c) {
      const auto at = [&](size_t input) { return args.inputs[input]->as<float>()[c]; };
      const double factor = at(kScale) / std::sqrt(at(kVariance) + epsilon);
      for (int64_t k = 0; k < view.inner; ++k, ++i) {
        y[i] = static_cast<float>((x[i] - at(kMean)) * factor + at(kBias));
      }
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 5, 5));
  FERRY_CHECK_OK(need_outputs(node, 1));
  if (node.int_or("training_mode", 0) != 0) {
    return error(Code::kUnsupported, "training_mode is set; export the model in evaluation mode");
  }
  if (node.int_or("spatial", 1) != 1) return error(Code::kUnsupported, "spatial is not 1");
  return with_inputs(node, 5, {{"epsilon", node.float_or("epsilon", 1e-5)}});
}

// x * scale + shift: one multiply-add an element. (With it the totals are those that Ultralytics
// publishes.)
int64_t macs(const InferArgs& args) { return elements(args.inputs[0]->shape); }

const OnnxRow kOnnx[] = {{"BatchNormalization", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_as(form, "BatchNormalization", {{"epsilon", attr<double>(form.node(), "epsilon")}});
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      const scale: f32[3] = uniform(1, 0.5, 2)
      const bias: f32[3] = uniform(2, -1, 1)
      const mean: f32[3] = uniform(3, -1, 1)
      const variance: f32[3] = uniform(4, 0.1, 2)
      y = batch_norm(x, scale, bias, mean, variance) epsilon=0.001
      output y
    })"},
};

}  // namespace

extern const OpDef op_batch_norm;
const OpDef op_batch_norm = {
    .name = "batch_norm",
    .summary = "normalises channels (axis 1) by given mean and variance, then scale and bias",
    .min_inputs = 5,
    .max_inputs = 5,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .macs = macs,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops
