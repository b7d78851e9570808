// group_norm: channels (axis 1) in groups; every group of every picture is normalised by its own
// mean and variance, then scale and bias a channel. As many groups as channels: instance
// normalisation.
#include <cmath>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kX = 0, kScale = 1, kBias = 2;

const AttrDef kAttrs[] = {
    {"groups", int64_t{1}, "number of groups; channels divide by it; 0: one for each channel"},
    {"epsilon", 1e-5, "added to the variance"},
};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  const Shape& x = args.inputs[kX]->shape;
  const int64_t groups = attr<int64_t>(args.node, "groups");
  if (x.size() < 2)
    return error(Code::kInvalid, "input is {}, needs a channel axis", shape_text(x));
  if (groups < 0 || (groups > 0 && x[1] % groups != 0)) {
    return error(Code::kInvalid, "{} channels do not divide into {} groups", x[1], groups);
  }
  FERRY_CHECK_OK(need_shape(args, kScale, {x[1]}, "scale"));
  FERRY_CHECK_OK(need_shape(args, kBias, {x[1]}, "bias"));
  return one_output(DType::kF32, x);
}

Status eval(const EvalArgs& args) {
  const Shape& shape = args.inputs[kX]->shape();
  const int64_t size = args.inputs[kX]->size();
  if (size == 0) return {};
  const int64_t wanted = attr<int64_t>(args.node, "groups");
  const int64_t groups = wanted == 0 ? shape[1] : wanted;
  const int64_t row = size / (shape[0] * groups), pixels = size / (shape[0] * shape[1]);
  const double epsilon = attr<double>(args.node, "epsilon");
  const Tensor* scale = input_or_null(args, kScale);
  const Tensor* bias = input_or_null(args, kBias);
  const float* x = args.inputs[kX]->as<float>().data();
  float* y = args.outputs[0]->mut<float>().data();
  for (int64_t first = 0; first < size; first += row) {
    double mean = 0, variance = 0;
    for (int64_t i = first; i < first + row; ++i) mean += x[i] / static_cast<double>(row);
    for (int64_t i = first; i < first + row; ++i) {
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(row);
    }
    const double factor = 1 / std::sqrt(variance + epsilon);
    for (int64_t i = first; i < first + row; ++i) {
      const auto channel = static_cast<size_t>(i / pixels % shape[1]);
      y[i] =
          static_cast<float>((x[i] - mean) * factor * (scale ? scale->as<float>()[channel] : 1.0f) +
                             (bias ? bias->as<float>()[channel] : 0.0f));
    }
  }
  return {};
}

Result<Converted> from_onnx_instance(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 3, 3));
  return with_inputs(node, 3,
                     {{"groups", int64_t{0}}, {"epsilon", node.float_or("epsilon", 1e-5)}});
}

// Scale and bias were one a group before opset 21; infer() refuses those unless groups and channels
// are as many.
Result<Converted> from_onnx_group(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 3, 3));
  return with_inputs(
      node, 3,
      {{"groups", node.int_or("num_groups", -1)}, {"epsilon", node.float_or("epsilon", 1e-5)}});
}

const OnnxRow kOnnx[] = {{"InstanceNormalization", from_onnx_instance},
                         {"GroupNormalization", from_onnx_group}};

// GroupNormalization as ferry means it is opset 21's: groups become channels of an
// InstanceNormalization, as PyTorch's exporter writes it.
Status to_onnx(OnnxForm& form) {
  const Shape& x = form.shape(kX);
  const int64_t channels = x[1], groups = attr<int64_t>(form.node(), "groups");
  const Attrs attrs = {{"epsilon", attr<double>(form.node(), "epsilon")}};
  if (groups == 0) {
    const Ref scale =
        form.has_input(kScale) ? form.input(kScale) : form.constant(filled({channels}, 1));
    const Ref bias =
        form.has_input(kBias) ? form.input(kBias) : form.constant(filled({channels}, 0));
    form.add("InstanceNormalization", {form.input(kX), scale, bias}, attrs);
    return {};
  }
  const Ref rows = form.add("Reshape", {form.input(kX), form.ints({0, groups, -1})});
  const Ref normal = form.add(
      "InstanceNormalization",
      {rows, form.constant(filled({groups}, 1)), form.constant(filled({groups}, 0))}, attrs);
  const Ref shape = form.target().dynamic ? form.add("Shape", {form.input(kX)}) : form.ints(x);
  Ref y = form.add("Reshape", {normal, shape});
  Ints per_channel(x.size() - 1, 1);
  per_channel[0] = channels;
  const auto spread = [&](size_t i) {
    return form.add("Reshape", {form.input(i), form.ints(per_channel)});
  };
  if (form.has_input(kScale)) y = form.add("Mul", {y, spread(kScale)});
  if (form.has_input(kBias)) form.add("Add", {y, spread(kBias)});
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,6,4,5]
      const scale: f32[6] = uniform(1, 0.5, 2)
      const bias: f32[6] = uniform(2, -1, 1)
      y = group_norm(x, scale, bias) groups=3
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4,5]
      y = group_norm(x) groups=0
      output y
    })"},
};

}  // namespace

extern const OpDef op_group_norm;
const OpDef op_group_norm = {
    .name = "group_norm",
    .summary = "normalises groups of channels by their own mean and variance",
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
